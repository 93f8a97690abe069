"""What reading the substitutions on real captions taught, word by word: kept short, and only where no rule helps.

The keys are parts of speech: ``n`` for nouns, ``a`` for adjectives.
"""

from __future__ import annotations

from collections.abc import Mapping

Words = Mapping[str, frozenset[str]]


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(one.split()) for one in text.split(",") if one.strip())


SENSES: Mapping[str, Mapping[str, str]] = {
    "n": {
        "advertisement": "ad.n.01", "bicycle": "bicycle.n.01", "bike": "bicycle.n.01", "dress": "dress.n.01",
        "dusk": "twilight.n.01", "flower": "flower.n.02", "girl": "female_child.n.01", "night": "night.n.01",
        "pant": "trouser.n.01", "photograph": "photograph.n.01", "picture": "picture.n.01", "sidewalk": "sidewalk.n.01",
        "smile": "smile.n.01", "stone": "rock.n.01", "sunglass": "sunglasses.n.01", "sunset": "sunset.n.01",
        "team": "team.n.01", "toilet": "toilet.n.02", "video game": "computer_game.n.01", "winter": "winter.n.01",
    },
    "a": {
        "bald": "bald.s.02", "lone": "alone.s.02", "snowy": "snow-clad.s.01", "various": "assorted.s.02",
        "young": "youthful.s.01",
    },
}  # fmt: skip
"""Words whose first sense is not the one that captions mean, or fails a rule that does not fit it."""

LEFT_ALONE: Words = {
    "n": _phrases(
        """back, banana tree, beam, boarder, body, boxer, bug, cape, carriage, castle, cattle, chip, close, commuter
        train, controller, cot, crane, cutter, defender, disc, dive, dog do, dummy, earth, eyeglass, fighter, front,
        globe, glove, grill, grit, hard hat, hood, hose, hydrant, individual, jean, lab, letter, lid, middle, midst,
        mitt, motorbike, muzzle, orange, other, pacifier, patch, pathway, pick, pirate, pit, planter, playground,
        powder, printer, rag, runner, runway, short, snow, soda, somebody, someone, spool, spot, sticker, stroller,
        tank, tee, thing, trailer, trunk, turtle, vas, wrapper, youth"""
    ),
    "a": _phrases(
        """about, baked, bare, bent, cloudy, counter, distorted, dressed, extra, extreme, few, flip, foggy, golden,
        haired, husky, inflated, interactive, key, left, like, looking, many, martial, matching, mobile, next, only,
        other, own, pet, plain, plastic, reflective, rolling, same, sandy, second, several, sheer, single, suited,
        sunny, super, third"""
    ),
}
"""Words that captions use in several senses, in one that has no synonyms while the first has, or in a fixed phrase."""

EVERYDAY: Words = {
    "n": _phrases(
        """adult female, adult male, aeroplane, anorak, bandana, baseball mitt, beefburger, bicyclist, bike, billfold,
        bloom, blossom, booklet, bookshop, brassiere, brochure, bus depot, bus terminal, camera operator, campground,
        car park, cellphone, cellular phone, chest of drawers, chopping board, commode, crewman, cruise liner, dinner
        jacket, domestic dog, drinking fountain, eatery, female child, fire engine, fire truck, fireplug, fish tank,
        fishing pole, flapjack, footballer, frock, frying pan, garden chair, giant panda, glade, goalkeeper,
        goaltender, guitar player, guitarist, gym shoe, hair dryer, headlamp, holidaymaker, horseback rider,
        ice-skating rink, image, jewellery, kerb, laptop, laptop computer, life jacket, life vest, limo, maize, male
        child, mobile phone, motorcoach, mountain climber, mountaineer, moustache, nappy, oarsman, office block,
        outcrop, panda, patrol car, pavement, petrol station, pine, plait, police cruiser, public toilet, pyjama, race
        car, racing car, ref, remote, rucksack, sailing boat, shopfront, shopping mall, skillet, sledge, sleigh,
        squad, squirt gun, surfboarder, tabby, taxicab, teddy, teen, tennis racquet, tennis shoe, tether, toilet
        tissue, trail bike, traveling bag, trike, ump, veggie, water gun, water pistol, wedding gown, windbreaker,
        zebra crossing, zoological garden"""
    ),
    "a": _phrases(
        """assorted, bald-headed, barefooted, coloured, colourful, comical, cushioned, downy, flowered, furred,
        gargantuan, greenish, greyish, jumbo, mucky, ornamental, pinkish, purplish, reddish, roast, scarlet, serene,
        shoeless, snow-covered, solitary, stony, stripy, violet, yellowish"""
    ),
}
"""Words that everybody knows though WordNet's tagged texts, most of them from the sixties, never use them so."""

UNFIT: Words = {
    "n": _phrases(
        """accouterment, babe, beacon light, bivouac, bowlder, buffoon, chorine, contraption, contrivance, corsage,
        cowpuncher, drapery, field general, foliage, front room, gallus, hand blower, hurler, icebox, ivory,
        landrover, leaf, ma, merchandise, minor, missive, mortal, nutrient, oral cavity, pa, plate, pop, puncher,
        pulpit, someone, stuff, terra firma, thick, dissenter"""
    ),
    "a": _phrases(
        """2d, 3rd, belowground, bouffant, fleshy, fuzzed, ladened, light-haired, lonely, petite, plane, profuse,
        rearward, riotous, vast, vernal"""
    ),
}
"""Words that are rare in captions, archaic, or of a grammar that does not fit where the word stood."""

NEVER: Words = {
    "n": _phrases(
        """bastard, cervix, crap, crapper, double-decker, face fungus, fire-eater, foliage, fume, habiliment, icon,
        hard hat, ikon, leafage, manus, merchandise, mitt, nutrient, optic, poop, potty, shit, shite, someone, somebody,
        swimwear, turd, veg, wearable"""
    ),
    "a": _phrases("2d, 3rd, au naturel, bastard, light-haired, plane, profuse, riotous, vernal"),
}
"""Words that are wrong in a caption even as rare ones: coarse, of another grammar, or of another sense."""

COMMON: Words = {
    "n": _phrases(
        """ad, bike, blossom, bloom, cellphone, grin, laptop, mobile phone, pavement, remote, shades, squad, teddy,
        teen, veggie"""
    ),
    "a": _phrases("greyish, reddish"),
}
"""Words that are no rare ones today, whatever the counts of WordNet's texts say."""
