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
from crosslens.language.spacy_pipeline import find_pipeline as find_pipeline
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
