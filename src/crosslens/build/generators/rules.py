"""``rules``: descriptions by rule, from annotations and the descriptions there are. No model, no network, no chance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest

from crosslens.build.generators.contents import COLOUR_MEANINGS, NARROW, RIDDLE, ImageContents, ObjectGroup, plural
from crosslens.build.generators.phrases import (
    INSIDE,
    SIZES,
    VAGUE,
    NounPhrase,
    PhraseEdit,
    PhraseReader,
    apply_phrase_edits,
    reader_of,
    tidy,
)
from crosslens.build.generators.protocol import (
    CONFUSABLE,
    GENERATORS,
    SHARPER,
    VAGUER,
    Generator,
    GeneratorSettings,
    Request,
    folded,
)
from crosslens.build.generators.transfer import fits, transfer
from crosslens.core import UsageError
from crosslens.storage import random_stream
from crosslens.synth import coloured, listing, number_word, relation, sentence

_MOST_ADDED = 3
_PREPOSITIONS = "with near beside past by behind and of are has have holding on in at"
_BEFORE_A_NUMBER = frozenset(_PREPOSITIONS.split())
_QUALITIES = (
    *SIZES, "young", "old", "white", "dark", "bright", "colorful", "colourful", "beautiful", "pretty", "cute", "nice",
    "modern", "vintage", "antique", "wooden", "metal", "busy", "empty", "crowded", "cluttered", "shiny", "fluffy",
    "brightly colored", "light", "long", "short", "tan", "gold", "silver", "striped", "smiling", "adult",
)  # fmt: skip
_HUES = "|".join(word for word, (_, register) in COLOUR_MEANINGS.items() if register != RIDDLE)
_MODIFIER = re.compile(
    rf"(?<!\bin )(?<!\ball )\b(?:(?:{_HUES})(?: and |, )(?:{_HUES})|{_HUES}|{'|'.join(_QUALITIES)}) "
    r"(?!and\b|in\b|on\b|with\b|is\b|are\b|of\b|at\b|to\b|that\b)(?=[a-z])",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:] | (?:with|while|near|next to|beside|behind|in front of|on top of|inside|under|above|at|on|in|and) "
)
_UNFINISHED = re.compile(
    r"\b(?:is|are|was|were|be|and|or|the|a|an|of|to|in|on|with|that|which|there|between|his|her|its|their|from|for|up|"
    r"has|have|next|close|front|one|both|by|into|onto|very|some|several|many|looking|wearing|picture|photo|image|view|"
    r"sees|shows|put|left|someone|somebody|it|out)$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\b(?:between|both|figures)\b", re.IGNORECASE)
_FEWEST = 2


@dataclass(frozen=True)
class Addition:
    """Something true that a text does not say yet: a change within it, or a phrase at its end.

    ``shared`` is how many rivals say the same; ``about`` keeps two additions from saying one thing twice.
    """

    about: str
    shared: int
    edit: PhraseEdit | None = None
    tail: str = ""
    more: ObjectGroup | None = None


def specialise(text: str, contents: ImageContents, rivals: Sequence[str]) -> list[str]:
    """The text with one further fact, then with two, then with three; the rarest facts first."""
    additions = sorted(_additions(text, contents, rivals), key=lambda addition: addition.shared)
    versions: list[str] = []
    for size in range(1, _MOST_ADDED + 1):
        subsets = combinations(additions[: 8 if size == 1 else 5], size)
        versions += [_with(text, some) for some in subsets if len({addition.about for addition in some}) == size]
    return list(dict.fromkeys(versions))


def _additions(text: str, contents: ImageContents, rivals: Sequence[str]) -> Iterator[Addition]:
    reader = reader_of(contents)
    mentioned = [reader.mentions(rival) for rival in rivals]
    noun_phrases = reader.noun_phrases(text)
    words = {phrase.meaning: phrase.word for phrase in reversed(noun_phrases)}
    for phrase in noun_phrases:
        # Named twice ("six people, and a man"), it is not clear which of them a number counts.
        if sum(other.meaning == phrase.meaning for other in noun_phrases) == 1:
            yield from _within(phrase, contents.by_name[phrase.meaning], rivals, text)
    for group in contents.groups:
        shared = sum(group.name in names for names in mentioned)
        if group.name not in words:
            yield Addition(group.name, shared, more=group)
        elif group.position and " of the picture" not in text:
            word = words[group.name] if not group.noun.unique else group.phrase().removeprefix("the ")
            yield Addition(f"where {group.name}", shared, tail=f"the {word}{group.position}")
    setting = contents.setting_phrase.strip()
    if setting and not any(phrase.kind == "setting" for phrase in reader.read(text)):
        yield Addition("setting", sum(setting in rival.lower() for rival in rivals), tail=setting)


def _within(phrase: NounPhrase, group: ObjectGroup, rivals: Sequence[str], text: str) -> Iterator[Addition]:
    """Its number and its colour, added to the noun phrase itself."""
    many, subject = group.count(), f"number {group.name}"
    if phrase.register == RIDDLE or group.noun.unique or phrase.colour or phrase.size or phrase.modifies:
        return
    before = text[: phrase.start].split()
    takes_number = (
        phrase.determiner.lower() in VAGUE
        if phrase.determiner
        else (not before or before[-1].lower() in _BEFORE_A_NUMBER)
    )  # instead of "some", or where nothing else describes it
    if takes_number and phrase.plural and many is not None and many > 1 and phrase.register != NARROW:
        edit = PhraseEdit(phrase.start, phrase.end, f"{number_word(many)} {plural(phrase.word)}")
        yield Addition(subject, sum(f"{number_word(many)} " in rival.lower() for rival in rivals), edit)
    if len(group.colours) == 1 and phrase.plural == (many != 1):
        new = coloured(phrase.word, group.kind, group.colours[0])
        edit = PhraseEdit(phrase.noun_start, phrase.noun_end, plural(new) if phrase.plural else new)
        yield Addition(subject, sum(group.colours[0] in rival.lower() for rival in rivals), edit)


def _with(text: str, additions: Sequence[Addition]) -> str:
    """The text with the additions made: edits within it, the others at its end."""
    edits = [addition.edit for addition in additions if addition.edit]
    body = apply_phrase_edits(text.strip(), edits) if edits else text
    stop = body.rstrip()[-1:] if body.rstrip()[-1:] in ".!?" else "."
    body = body.strip().rstrip(".!?").rstrip()
    more = [addition.more for addition in additions if addition.more]
    positions = [addition.tail for addition in additions if addition.tail.startswith("the ")]
    settings = [addition.tail for addition in additions if addition.tail and addition.tail not in positions]
    body += "".join(f", {setting}" for setting in settings)
    if positions:
        body += f", with {listing(positions)}"
    if more:
        listed = listing([group.phrase() for group in more])
        listed += (more[0].position if len(more) == 1 and not positions else "") or " in view"
        # A second "with" would read as part of the first.
        body += f"; {there_is(more)} also {listed}" if " with " in body else f", with {listed}"
    return tidy(body + stop)


def there_is(groups: Sequence[ObjectGroup]) -> str:
    """``there is`` or ``there are``, by the number of the first group."""
    count = groups[0].count()
    return "there is" if count == 1 or (count is None and groups[0].name == "person") else "there are"


def generalise(text: str, contents: ImageContents) -> list[str]:
    """More general versions: one detail left out, then several at once."""
    reader = reader_of(contents)
    plain = _without_modifiers(text, reader)
    steps = [plain, _without_numbers(text, reader), _cut(text), _wider(text, reader), _cut(plain or text)]
    steps += [_wider(plain or text, reader), _cut(_cut(text) or text), _wider(_cut(plain or text) or text, reader)]
    everything = _without_numbers(_wider(_cut(plain or text) or text, reader) or text, reader)
    return list(dict.fromkeys(step for step in (*steps, everything) if step and step != text))


def _without_modifiers(text: str, reader: PhraseReader) -> str | None:
    """Without colours, sizes and other qualities."""
    noun_phrases = reader.noun_phrases(text)
    # A name keeps its colour: "orange" is also a fruit, "white paper" a setting.
    nouns = {at for phrase in noun_phrases for at in range(phrase.noun_start, phrase.end)}
    nouns |= {at for phrase in reader.read(text) if phrase.kind == "setting" for at in range(phrase.start, phrase.end)}
    edits = [PhraseEdit(phrase.noun_end, phrase.end, "") for phrase in noun_phrases if phrase.noun_end < phrase.end]
    edits += [
        PhraseEdit(match.start(), match.end(), "") for match in _MODIFIER.finditer(text) if match.start() not in nouns
    ]
    return apply_phrase_edits(text, edits) if edits else None


def _without_numbers(text: str, reader: PhraseReader) -> str | None:
    """``some`` instead of numbers above one."""
    edits = [
        PhraseEdit(phrase.start, phrase.start + len(phrase.determiner), "some")
        for phrase in reader.noun_phrases(text)
        if (phrase.number or 0) > 1 and phrase.plural
    ]
    return apply_phrase_edits(text, edits) if edits else None


def _wider(text: str, reader: PhraseReader) -> str | None:
    """Hypernyms instead of names: ``an animal`` for ``a dog``."""
    edits: list[PhraseEdit] = []
    used: set[str] = set()
    for phrase in reader.noun_phrases(text):
        words = reader.nouns[phrase.meaning]
        wider = words.plain if phrase.register == NARROW else words.wider
        if wider is None or words.unique or phrase.modifies or phrase.word.lower() == wider:
            continue
        article = phrase.determiner.lower() in ("a", "an")
        if article and wider in used:
            edits.append(PhraseEdit(phrase.start, phrase.start + len(phrase.determiner), "another"))
        edits.append(PhraseEdit(phrase.noun_start, phrase.noun_end, plural(wider) if phrase.plural else wider))
        used.add(wider)
    return apply_phrase_edits(text, edits) if edits else None


def _cut(text: str) -> str | None:
    """Without its last clause, if what remains is a whole description."""
    body = text.strip().rstrip(".!?")
    for match in reversed(list(_CLAUSE.finditer(body))):
        rest = body[: match.start()].rstrip(" ,;:")
        whole = not _UNFINISHED.search(rest) and not _MODIFIER.search(rest.split(" ")[-1] + " x")
        if match[0] == " and " and _JOINED.search(rest):
            continue
        if len(rest.split()) >= _FEWEST and whole and rest.count('"') % 2 == 0:
            return tidy(rest + ".")
    return None


_RELATION_PHRASES = {
    "left of": "to the left of", "right of": "to the right of", "above": "above", "below": "below", INSIDE: "inside",
}  # fmt: skip


@GENERATORS.register("rules", example="rules")
def load_rules(source: str, settings: GeneratorSettings) -> Generator:
    """Rewrites by rule, from annotated objects: built in, needs no model, says only what annotations support."""
    if settings.model or settings.options:
        options = ", ".join(settings.options) or "model"
        raise UsageError(f"the generator rules takes no option {options}", fix="leave it out")
    return RuleGenerator()


class RuleGenerator:
    """The rule-based generator; the same request always gets the same answer."""

    name = "rules"
    revision = "2"
    sees_pictures = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """The next ``wanted`` texts for each request: attempt 0 gets the best ones, attempt 1 those after them."""
        answers = []
        for request in requests:
            old_texts = {folded(text) for text in (*request.texts, *request.rivals)}
            lists = _versions(request)
            # The lists in an order drawn by the seed; within each the best stays first.
            order = random_stream(request.seed, "rules", request.image, request.purpose).permutation(len(lists))
            dealt = chain.from_iterable(zip_longest(*(lists[at] for at in order)))
            # A version of a caption without a capital or a full stop would lack them too.
            new = {folded(text): sentence(text.strip()) for text in dealt if text and folded(text) not in old_texts}
            first = request.attempt * request.wanted
            answers.append(tuple(new.values())[first : first + request.wanted])
        return answers


def _versions(request: Request) -> list[list[str]]:
    """For each present text its new versions, the best first; without one all sentences, dealt out."""
    contents = ImageContents.of(request.objects)
    if request.purpose == SHARPER:
        return [specialise(text, contents, request.rivals) for text in request.texts]
    if request.purpose == VAGUER:
        return [generalise(text, contents) for text in request.texts]
    if request.purpose == CONFUSABLE:
        original, turns = ImageContents.of(request.original_objects), range(max(1, len(contents.groups)))
        versions = [dict.fromkeys(transfer(text, original, contents, turn) for turn in turns) for text in request.texts]
        return [
            [new for new in of_text if new and fits(new, contents) and not fits(new, original)] for of_text in versions
        ]
    sentences = _describe(contents, request.rivals)
    # Dealt like the versions of several texts, so that neighbours in the list do not all come at once.
    return [sentences[start :: request.wanted] for start in range(request.wanted)]


def _describe(contents: ImageContents, rivals: Sequence[str]) -> list[str]:
    """Sentences that are true of an image, those first that name what the rivals do not."""
    reader = reader_of(contents)
    mentioned = [reader.mentions(rival) for rival in rivals]
    groups = sorted(contents.groups, key=lambda group: sum(group.name in names for names in mentioned))
    if not groups:
        return []
    sentences: list[str] = []
    rich_phrases: dict[str, str] = {}  # with what is written on it, or what it is doing
    for group in groups:
        doing = f' that says "{group.text}"' if group.text else f" {group.action}" if group.action else ""
        rich_phrases[group.name] = group.phrase() + doing
    at = contents.setting_phrase
    for size in (2, 1, 3):
        for subset in combinations(groups, min(size, len(groups))):
            rich = listing([rich_phrases[group.name] for group in subset])
            plain = listing([group.phrase(colour=False) for group in subset])
            sentences += [f"{rich}{at}", f"{there_is(subset)} {rich}{at}", f"a picture of {rich}{at}"]
            if any(group.position for group in subset):
                sentences.append(listing([group.phrase() + group.position for group in subset]))
            sentences += [plain, f"{plain}{at}" if at else f"a view of {plain}"]
    for first, other in combinations(groups, 2):  # how two single objects lie to each other
        if first.single and other.single and first.single.box and other.single.box:
            where = relation(first.single.box, other.single.box)
            if where is not None:
                sentences.append(f"{first.phrase()} {_RELATION_PHRASES[where]} {other.phrase()}{at}")
    return list(dict.fromkeys(sentences))
