"""Which noun an adjective describes, and what kind of thing that noun names."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from crosslens.language import is_phrase, load_wordnet
from crosslens.perturbations.caption import Caption, Token


def word_set(text: str) -> frozenset[str]:
    """The words of a text between blanks."""
    return frozenset(text.split())


MODIFIERS = frozenset({"amod", "compound", "nmod"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_PREDICATES = frozenset({"acomp", "oprd", "attr", "ccomp"})
_JOINERS = frozenset("-/'’")
_FIXED_VERBS = frozenset({"fall"})
"""Verbs that make one expression with their adjective: *fall asleep*."""

LITERAL_PHRASES = frozenset(
    phrase.replace("_", " ")
    for phrase in word_set(
        """big_tree black_body black_box black_cat black_duck black_flag black_kite black_race
        black_sheep black_spot blue_baby blue_flag blue_jean blue_jet blue_ribbon blue_sky
        blue_wall cold_water cold_weather deep_water dirty_dog dirty_linen double_bed
        double_door front_door front_room front_yard gold_plate green_dragon green_light
        green_lizard green_salad hot_water large_number large_person left_hand
        little_dog little_girl long_pants long_sleeve military_man military_personnel
        military_vehicle narrow_boat old_lady old_man old_person old_woman
        open_door outdoor_stage professional_baseball professional_football
        professional_tennis rainy_day red_bat red_carpet red_clay red_fire red_flag red_light
        right_hand rough_water round_table round_window rural_area short_sleeve silver_plate
        silver_spoon small_boat small_town urban_area white_cake white_elephant white_flag
        white_horse white_house white_leather white_line white_metal white_paper white_race
        white_room white_sheep white_tail yellow_flag yellow_jacket yellow_light yellow_race
        yellow_spot young_girl young_lady young_man young_person young_woman"""
    )
)
"""Phrases that WordNet lists as one noun, but whose adjective a caption means literally: *a yellow jacket*."""

BRANDS = word_set("Frisbee Frisbees Popsicle Jeep SUV TV Ferrari Harley Xbox Mohawk Ducati Honda Corvette")
"""Capitalised words for things."""

_BESIDE_WORDNET = {
    "person": word_set(
        """adult boy brunette child couple crowd family female folk girl guy kid lady male man
        people person police teen teenager toddler woman blond blonde redhead youth gentleman
        human queen"""
    ),
    "animal": word_set("animal bird cat dog horse kitten puppy pup bull bear seal lamb chick bug fish cow"),
}
_NOT_PERSONS = word_set(
    """antique begin bleacher boxer bunny burger camper cardinal carrier checker coaster
    comforter controller conveyor cooky counter crane crank cub cutter dalmatian dane decker
    diner domino dummy fry garland grey grind gull hanger heron hood hotdog hummer juicer
    jumper lasso lodge mannequin maroon monitor ostrich ottoman pacifier panini peel picket
    pitcher planner planter plunger polo pom pop preserver prey printer protector quad rocker
    ruler scrapper shepherd shrimp slicer sooner speaker squirt steady stroller sucker tackle
    taco tiger toaster topper trailer tutu wade washer whale wheeler white wiener zombie"""
)
_NOT_ANIMALS = word_set("bat beef bot clam crab cricket feeder fly hind mouse salmon turkey wader bass")
_NOT_MEANT = {noun: frozenset({"person"}) for noun in _NOT_PERSONS} | {
    noun: frozenset({"person", "animal"}) for noun in _NOT_ANIMALS
}
"""Nouns that have a first sense in WordNet which captions do not mean, and the kinds that it belongs to."""
_ROOTS = {
    "person": ("person.n.01",),
    "animal": ("animal.n.01",),
    "food": ("food.n.01", "food.n.02"),
    "plant": ("plant.n.02", "plant_part.n.01"),
    "garment": ("clothing.n.01", "footwear.n.01", "footwear.n.02", "headdress.n.01"),
    "vehicle": ("conveyance.n.03",),
    "building": ("structure.n.01",),
    "artifact": ("artifact.n.01",),
}


def described_noun(caption: Caption, position: int) -> int | None:
    """The position of the noun that the word at ``position`` describes; None where it does something else.

    It describes the noun it precedes (*a red car*), or the subject of the verb it follows (*the car is red*).
    Parts of names, of fixed phrases (*hot dog*) and of words joined by a hyphen describe nothing by themselves.
    """
    tokens = caption.tokens
    token = tokens[position]
    name = token.text[:1].isupper() and (position > 0 or token.pos == "PROPN")
    half = position > 0 and tokens[position - 1].text.lower() in ("half", "middle")
    if name or half or is_joined(caption, position):
        return None
    first = position
    while (
        tokens[first].arc == "conj" and tokens[tokens[first].head].pos in ("ADJ", "NOUN") and tokens[first].head < first
    ):
        first = tokens[first].head
    described = tokens[first]
    if described.arc in MODIFIERS:
        noun = described.head
        apart = noun < position or _another_begins(tokens[position + 1 : noun])
        return None if apart or not _is_common_noun(caption, noun) or in_phrase(caption, position) else noun
    if described.arc in _PREDICATES and tokens[described.head].lemma not in _FIXED_VERBS:
        return next(
            (at for at, other in enumerate(tokens) if other.head == described.head and other.arc in _SUBJECTS), None
        )
    return None


def _another_begins(between: tuple[Token, ...]) -> bool:
    """Whether a second noun phrase begins there: *an orange and two apples*, *a black and a white dog*."""
    return any(left.pos == "CCONJ" and right.pos in ("DET", "NUM") for left, right in pairwise(between))


def _is_common_noun(caption: Caption, noun: int) -> bool:
    """A common noun, or a brand used as one: *a red Frisbee*, not *old London*."""
    token = caption.tokens[noun]
    return token.pos == "NOUN" or (token.pos == "PROPN" and (token.text.islower() or token.text in BRANDS))


def is_joined(caption: Caption, position: int) -> bool:
    """Whether a hyphen or a slash ties the word to another."""
    token = caption.tokens[position]
    beside = caption.text[: token.start][-1:], caption.text[token.end :][:1]
    return any(character.isalnum() or character in _JOINERS for character in beside if character)


def in_phrase(caption: Caption, position: int) -> bool:
    """Whether the word and the next one name something of their own: *brown bear*, *orange juice*."""
    tokens = caption.tokens
    if position + 1 >= len(tokens) or tokens[position + 1].pos not in ("NOUN", "PROPN"):
        return False
    word, following = tokens[position].text.lower(), tokens[position + 1]
    if f"{word} {following.lemma}" in LITERAL_PHRASES or f"{word} {following.text.lower()}" in LITERAL_PHRASES:
        return False
    return is_phrase(f"{word} {following.text.lower()}")


@lru_cache(maxsize=1 << 14)
def noun_kinds(noun: str) -> frozenset[str]:
    """The kinds of things that a noun names as captions use it, mostly in its first sense.

    Persons and animals are ``being`` as well.
    """
    kinds = {kind for kind, words in _BESIDE_WORDNET.items() if noun in words}
    if not kinds:
        refused = _NOT_MEANT.get(noun, frozenset())
        by_sense = (_kinds_of_sense(int(sense)) for sense in load_wordnet().synsets(noun, "n"))
        kinds = set(next((of_sense for of_sense in by_sense if not of_sense & refused), ()))
    if kinds & {"person", "animal"}:
        kinds.add("being")
    return frozenset(kinds)


def _kinds_of_sense(sense: int) -> frozenset[str]:
    above = {sense, *load_wordnet().hypernym_closure(sense).tolist()}
    return frozenset(kind for kind, roots in _root_ids().items() if roots & above)


@lru_cache(maxsize=1)
def _root_ids() -> dict[str, frozenset[int]]:
    return {kind: frozenset(load_wordnet().synset(name) for name in names) for kind, names in _ROOTS.items()}
