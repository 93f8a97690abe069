"""The opposite of an adjective beside a noun: read by a person, one by one."""

from __future__ import annotations

from crosslens.language import load_wordnet
from crosslens.perturbations.text.opposites import antonym_table, attribute_antonyms, opposites_of
from tests.tables import each_row

NONE: set[str] = set()

REVIEWED = {
    # what has an opposite whatever it describes
    "large car": {"small"}, "big house": {"small", "little"}, "huge wave": {"small", "little"},
    "enormous ship": {"small", "little"}, "gigantic kite": {"small", "little"}, "small dog": {"large", "big"},
    "tiny bird": {"large", "big"}, "little girl": {"big", "large"}, "tall tower": {"short"}, "long road": {"short"},
    "wide river": {"narrow"}, "narrow street": {"wide"}, "thick book": {"thin"}, "high wall": {"low"},
    "low table": {"high"}, "deep water": {"shallow"}, "shallow pool": {"deep"}, "young woman": {"old"},
    "elderly man": {"young"}, "new bike": {"old"}, "wet street": {"dry"}, "dry leaf": {"wet"}, "dirty dish": {"clean"},
    "clean shirt": {"dirty"}, "beautiful lake": {"ugly"}, "pretty girl": {"ugly"}, "ugly fish": {"beautiful"},
    "happy boy": {"unhappy"}, "indoor pool": {"outdoor"}, "outdoor market": {"indoor"}, "rural area": {"urban"},
    "urban scene": {"rural"}, "paved road": {"unpaved"}, "male player": {"female"}, "female player": {"male"},
    "colorful kite": {"colorless"}, "left hand": {"right"}, "front wheel": {"back"}, "fast car": {"slow"},
    "slow train": {"fast"}, "quiet street": {"noisy"}, "crowded bus": {"uncrowded"}, "messy desk": {"tidy"},
    "smooth rock": {"rough"}, "fake flower": {"genuine"}, "artificial tree": {"natural"}, "gorgeous view": {"ugly"},
    "humongous cake": {"small"}, "grimy wall": {"clean"}, "early morning": {"late"}, "horizontal line": {"vertical"},
    # what depends on the noun
    "old man": {"young"}, "old dog": {"young"}, "old house": {"new"}, "old car": {"new"}, "old bat": {"new"},
    "short man": {"tall"}, "short hair": {"long"}, "short sleeve": {"long"}, "short tree": {"tall"},
    "thin man": {"fat"}, "thin slice": {"thick"}, "light snow": {"heavy"}, "light skin": {"dark"},
    "dark hair": {"light"}, "open door": {"closed"}, "open umbrella": {"closed"}, "open field": NONE,
    "open ocean": NONE, "empty glass": {"full"}, "empty beach": NONE, "full moon": NONE, "full plate": {"empty"},
    "clear sky": {"cloudy"}, "clear vase": {"opaque"}, "clear idea": NONE, "cloudy sky": {"clear"},
    "rough sea": {"calm"}, "rough road": {"smooth"}, "rough idea": NONE, "calm sea": {"stormy"}, "calm man": NONE,
    "muddy river": {"clear"}, "muddy road": {"dry"}, "muddy dog": {"clean"}, "hot coffee": {"cold"},
    "hot girl": NONE, "cold drink": {"hot"}, "cool water": {"warm"}, "cool guy": NONE, "fresh bread": {"stale"},
    "fresh fruit": NONE, "frozen lake": {"unfrozen"}, "frozen pizza": {"fresh"}, "sharp knife": {"dull"},
    "sharp turn": NONE, "soft toy": {"hard"}, "soft drink": NONE, "heavy rain": {"light"}, "heavy metal": NONE,
    "right hand": {"left"}, "right answer": NONE, "top shelf": {"bottom"}, "top hat": NONE, "ripe banana": {"unripe"},
    "curly hair": {"straight"}, "curly fry": NONE, "dead tree": {"live"}, "dead end": NONE, "bald man": {"hairy"},
    "blond woman": {"brunette"}, "striped shirt": {"plain"}, "double bed": {"single"}, "double decker": NONE,
    "young child": NONE, "old child": NONE, "older child": {"younger"},
    "older man": {"younger"}, "older building": {"newer"}, "younger girl": {"older"}, "oldest house": {"newest"},
    "young puppy": NONE, "female woman": NONE, "good dog": NONE, "good meal": {"bad"},
    # what has none in a picture, though WordNet knows some
    "green apple": NONE, "red car": NONE, "blue sky": NONE, "yellow bus": NONE, "brown dog": NONE, "pink shirt": NONE,
    "purple hat": NONE, "orange cat": NONE, "gray cat": NONE, "other man": NONE, "same shirt": NONE,
    "different color": NONE, "several dog": NONE, "many people": NONE, "few people": NONE, "various fruit": NONE,
    "multiple sign": NONE, "single man": NONE, "next door": NONE, "second floor": NONE, "middle finger": NONE,
    "wooden bench": NONE, "plastic bag": NONE, "concrete wall": NONE, "electric guitar": NONE, "polar bear": NONE,
    "busy street": NONE, "ready man": NONE, "live music": NONE, "close look": NONE, "stuffed animal": NONE,
    "fluffy dog": NONE, "sheer cliff": NONE, "puffy jacket": NONE, "skimpy dress": NONE, "pregnant woman": NONE,
    "asian man": NONE, "shirtless man": NONE, "professional chef": {"nonprofessional"}, "homeless man": NONE,
    "white man": NONE, "black man": NONE, "teenage boy": NONE, "modern building": NONE, "wheeled cart": NONE,
}  # fmt: skip


@each_row("phrase", REVIEWED)
def test_reviewed(phrase: str) -> None:
    adjective, noun = phrase.split()
    assert set(opposites_of(adjective, noun)) == REVIEWED[phrase]


def test_black_and_white_are_opposites_of_things_that_have_that_colour() -> None:
    assert opposites_of("black", "dog", coloured=True) == ("white",)
    assert opposites_of("white", "dog", coloured=True) == ("black",)
    assert opposites_of("black", "dog") == ()


def test_words_between_adjective_and_noun_count() -> None:
    assert opposites_of("wide", "field", between=frozenset({"open"})) == ()
    assert opposites_of("clear", "sky", between=frozenset({"blue"})) == ()


def wordnet_opposites(adjective: str) -> set[str]:
    """Every word that WordNet opposes to any sense of an adjective or of its base, or to the head of such a sense."""
    net = load_wordnet()
    senses = {int(synset) for synset in net.synsets(adjective, "a")}
    heads = {int(head) for sense in senses if net.part(sense) == "s" for head in net.similar_to(sense)}
    opposed = {int(synset) for sense in senses | heads for synset in net.antonym_synsets(sense)}
    return {lemma for synset in opposed for lemma in net.lemmas(synset)}


def test_every_opposite_of_the_table_is_one_of_wordnets() -> None:
    def base_form(word: str) -> str | None:
        return load_wordnet().morphy(word.removesuffix("er").removesuffix("est"), "a")

    strangers = [
        (adjective, word)
        for adjective, lines in antonym_table().items()
        for line in lines
        for word in line.opposites
        if not {word, base_form(word)} & wordnet_opposites(adjective)
    ]
    assert strangers == []


def test_no_line_of_the_table_is_beyond_reach() -> None:
    for adjective, lines in antonym_table().items():
        assert all(line.nouns or line.refused for line in lines[:-1]), adjective


def test_opposites_by_kind_share_an_attribute_and_never_a_trap() -> None:
    traps = {"green": "ripe", "busy": "idle", "open": "shut", "wooden": "graceful", "red": "achromatic"}
    for adjective, trap in traps.items():
        assert trap in wordnet_opposites(adjective)
        assert trap not in attribute_antonyms(adjective)
    assert attribute_antonyms("gargantuan") == ("small",)
    assert attribute_antonyms("unlistedword") == ()
    assert attribute_antonyms("dogs") == ()
