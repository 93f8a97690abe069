"""Synonyms that a reader takes for what the word meant.

WordNet lists a word's senses by how often they are used, so the first one is the best guess without reading the
picture; but a synonym of that sense is no help where it is known for another meaning (*lid* for a hat) or to nobody
(*rima oris*). A synonym is therefore sensible where

- it shares the word's first sense (or the one that captions mean, for the words of a reviewed table), and that sense
  makes up at least half of the word's counted uses;
- that sense is its own first sense, too;
- it was met at least once in WordNet's tagged texts, or is in a reviewed table;
- it is not a spelling of the word, nor a name, nor a process (*fencing* for a fence), nor the word made narrower
  (*gun barrel* for a barrel); and
- for nouns, the sense is of something that can be seen, and the word is a noun more often than anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from crosslens.language import is_plural, load_wordnet, pluralise

Words = Mapping[str, frozenset[str]]


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(phrase.split()) for phrase in text.split(",") if phrase.strip())


# What reading the substitutions on real captions taught, word by word: kept short, and only where no rule helps. The
# keys are parts of speech: n for nouns, a for adjectives.

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
"""Words that are rare in captions, archaic, or of a grammar that does not fit there."""

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


_DOMINANT = 0.5
"""The share of a word's counted uses that its sense must have."""
_SELDOM = 5
"""Counted uses up to which a word may be called rare."""
_SURE = 8
"""Uses from which on a word in *-ing* is taken for a noun, as *building* is."""


@lru_cache(maxsize=1 << 14)
def sensible_synonyms(word: str, part: str) -> tuple[str, ...]:
    """The synonyms of a base form as noun (``n``) or adjective (``a``), the usual first; with spaces, not ``_``."""
    return tuple(synonym for synonym in same_sense(word, part) if is_everyday(synonym, part))


@lru_cache(maxsize=1 << 14)
def rarest_synonyms(word: str, part: str) -> tuple[str, ...]:
    """Of the synonyms of the right sense, those counted least often: seldom, and less often than the word."""
    counts = {synonym: word_uses(synonym, part) for synonym in same_sense(word, part) if synonym not in COMMON[part]}
    least = min(counts.values(), default=_SELDOM)
    if least > _SELDOM or least >= max(word_uses(word, part), 1):
        return ()
    return tuple(synonym for synonym, uses in counts.items() if uses == least)


@lru_cache(maxsize=1 << 14)
def loose_synonyms(word: str, part: str | None) -> tuple[str, ...]:
    """All synonyms of all senses, of one part of speech or of any, as nltk's ``synsets`` gives them."""
    synonyms = (spelled_out(lemma) for lemma in load_wordnet().synonyms(word, part))
    return tuple(synonym for synonym in dict.fromkeys(synonyms) if not _same_spelling(synonym, word))


@lru_cache(maxsize=1 << 14)
def same_sense(word: str, part: str) -> tuple[str, ...]:
    """The other words of the sense that is meant, known first of all for it; none where the sense is unsure."""
    synset = meant_sense(word, part)
    if synset is None:
        return ()
    reviewed = EVERYDAY[part] if word in SENSES[part] else frozenset()
    words = load_wordnet()
    lemmas = zip(map(spelled_out, words.lemmas(synset)), words.sense_numbers(synset), strict=True)
    fit = (lemma for lemma, number in lemmas if (number == 1 or lemma in reviewed) and lemma.islower())
    return tuple(lemma for lemma in fit if lemma not in NEVER[part] and _differs(lemma, word, part))


@lru_cache(maxsize=1 << 14)
def meant_sense(word: str, part: str) -> int | None:
    """The synset that a caption means by a word: the reviewed one, or the first where it is the usual one."""
    words = load_wordnet()
    if word in LEFT_ALONE[part]:
        return None
    if word in SENSES[part]:
        return words.synset(SENSES[part][word])
    senses = [int(synset) for synset in words.synsets(word, part) if _number_in(int(synset), word)]
    if not senses or _number_in(senses[0], word) != 1:
        return None
    uses = [_uses_in(synset, word) for synset in senses]
    usual = uses[0] >= _DOMINANT * sum(uses) and (part == "a" or (_is_visible(senses[0]) and is_noun_first(word)))
    return senses[0] if usual else None


def _is_visible(synset: int) -> bool:
    """Whether a noun's sense is of something physical."""
    return load_wordnet().synset("physical_entity.n.01") in load_wordnet().hypernym_closure(synset)


@lru_cache(maxsize=1 << 14)
def is_noun_first(word: str) -> bool:
    """Whether a word is counted as a noun at least as often as anything else: taggers err where it is not."""
    if not load_wordnet().synsets(word, "n").size:
        return False
    uses = word_uses(word, "n")
    return uses >= max(word_uses(word, part) for part in "var") and (uses >= _SURE or not _is_gerund(word))


@lru_cache(maxsize=1 << 14)
def is_often_verb(word: str, share: float = 0.5) -> bool:
    """Whether the uses of a word as a verb are at least this share of those as a noun."""
    return word_uses(word, "v") >= max(share * word_uses(word, "n"), 1)


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and load_wordnet().morphy(word, "v") is not None


def is_everyday(word: str, part: str) -> bool:
    """Whether readers know a word: it occurs in WordNet's tagged texts, or a table says so."""
    return word in EVERYDAY[part] or (word_uses(word, part) > 0 and word not in UNFIT[part])


@lru_cache(maxsize=1 << 15)
def word_uses(word: str, parts: str) -> int:
    """How often a word was counted in WordNet's tagged texts, in all senses of these parts of speech together."""
    return sum(_uses_in(int(synset), word) for part in parts for synset in load_wordnet().synsets(word, part))


def spelled_out(lemma: str) -> str:
    """A lemma as it is written in a sentence."""
    return lemma.replace("_", " ")


def _uses_in(synset: int, word: str) -> int:
    return next((uses for lemma, uses in _members(synset, load_wordnet().uses(synset)) if lemma == word), 0)


def _number_in(synset: int, word: str) -> int:
    """Which of the word's senses a synset is; 0 where the word, as it is written, is not in it."""
    return next(
        (number for lemma, number in _members(synset, load_wordnet().sense_numbers(synset)) if lemma == word), 0
    )


def _members(synset: int, values: list[int]) -> zip[tuple[str, int]]:
    return zip((spelled_out(lemma).lower() for lemma in load_wordnet().lemmas(synset)), values, strict=True)


def _differs(synonym: str, word: str, part: str) -> bool:
    """Not the word in another spelling, nor a process, nor a compound that narrows the word (*dark-brown*)."""
    if (
        _same_spelling(synonym, word)
        or synonym == pluralise(word)
        or (synonym.endswith("ing") and not word.endswith("ing"))
    ):
        return False
    if part == "n" and is_plural(synonym) != is_plural(word) and word not in SENSES[part]:
        return False
    return synonym in EVERYDAY[part] or word not in synonym.replace("-", " ").split()


def _same_spelling(word: str, other: str) -> bool:
    plain = [word.lower().replace(" ", "").replace("-", "").replace("_", "") for word in (word, other)]
    return plain[0] == plain[1]
