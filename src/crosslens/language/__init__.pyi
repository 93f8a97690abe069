from crosslens.language.facts import (
    ACTION_FORMS as ACTION_FORMS,
    ACTION_OF as ACTION_OF,
    BETWEEN as BETWEEN,
    COLOUR_FAMILIES as COLOUR_FAMILIES,
    COLOUR_FAMILY as COLOUR_FAMILY,
    CONTRARY_ACTIONS as CONTRARY_ACTIONS,
    CONTRARY_SIDES as CONTRARY_SIDES,
    EXCLUSIVE as EXCLUSIVE,
    FACT_READERS as FACT_READERS,
    FACT_WORDS as FACT_WORDS,
    FAR_COLOURS as FAR_COLOURS,
    FUNCTION_WORDS as FUNCTION_WORDS,
    LARGE as LARGE,
    OPPOSITE_POSITIONS as OPPOSITE_POSITIONS,
    QUOTED as QUOTED,
    SIZE_WORDS as SIZE_WORDS,
    SMALL as SMALL,
    SMALL_NUMBERS as SMALL_NUMBERS,
    Stated as Stated,
    Words as Words,
    in_digits as in_digits,
    is_noun as is_noun,
    may_name as may_name,
    naming_words as naming_words,
    read_number as read_number,
)
from crosslens.language.identification import (
    ANY_LANGUAGE as ANY_LANGUAGE,
    COMMON_LANGUAGES as COMMON_LANGUAGES,
    language_identifier as language_identifier,
)
from crosslens.language.inflection import (
    SAME_IN_PLURAL as SAME_IN_PLURAL,
    inflected as inflected,
    is_plural as is_plural,
    pluralise as pluralise,
    singularise as singularise,
    takes_an as takes_an,
)
from crosslens.language.parse import Parse as Parse, Parses as Parses, is_phrase as is_phrase
from crosslens.language.parsing import parse_texts as parse_texts, require_texts as require_texts
from crosslens.language.scene_graphs import (
    PositionedGraph as PositionedGraph,
    SceneGraph as SceneGraph,
    positioned_graph as positioned_graph,
    scene_graph as scene_graph,
)
from crosslens.language.spacy_pipeline import find_pipeline as find_pipeline, installed_version as installed_version
from crosslens.language.tokens import count_words as count_words, tokenize as tokenize, tokenizer as tokenizer
from crosslens.language.verbs import restore_verbs as restore_verbs
from crosslens.language.wordnet import load_wordnet as load_wordnet
from crosslens.language.words import (
    ALWAYS_PAIRS as ALWAYS_PAIRS,
    CO_CAPTION_QUANTITIES as CO_CAPTION_QUANTITIES,
    COLOUR_THRESHOLDS as COLOUR_THRESHOLDS,
    COLOURS as COLOURS,
    COUNTED_AS as COUNTED_AS,
    FEMALE as FEMALE,
    HE as HE,
    IT as IT,
    KINDS as KINDS,
    MALE as MALE,
    NUMBERS as NUMBERS,
    SHE as SHE,
    SIDES as SIDES,
    SIZES as SIZES,
    STOP_WORDS as STOP_WORDS,
    TENS as TENS,
    THEY as THEY,
    Colour as Colour,
    ColourSpace as ColourSpace,
    ColourValues as ColourValues,
    check_colour_space as check_colour_space,
    colour_distance as colour_distance,
    is_number as is_number,
    named_colours as named_colours,
    number_word as number_word,
    word_set as word_set,
)
