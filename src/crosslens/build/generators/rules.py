"""``rules``: descriptions by rule, from annotations and the descriptions there are. No model, no network, no chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, zip_longest

from crosslens.build.generators.annotations import ImageContents, ObjectGroup, spatial_relation
from crosslens.build.generators.phrases import INSIDE, reader_of
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
from crosslens.build.generators.rewrite import generalise, specialise, there_is
from crosslens.build.generators.transfer import fits, transfer
from crosslens.core import UsageError, random_stream
from crosslens.synth import listing, sentence

_RELATION_PHRASES = {
    "left": "to the left of", "right": "to the right of", "above": "above", "below": "below", INSIDE: "inside",
}  # fmt: skip


@GENERATORS.register("rules", example="rules")
def load_rules(source: str, settings: GeneratorSettings) -> Generator:
    """Rewrites by rule, from annotated objects: built in, needs no model, says only what annotations support."""
    if settings.model or settings.options:
        named = ", ".join(settings.options) or "model"
        raise UsageError(f"the generator rules takes no option {named}", fix="leave it out")
    return RuleGenerator()


class RuleGenerator:
    """The rule-based generator; the same request always gets the same answer."""

    name = "rules"
    revision = "2"
    sees_pictures = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """The next ``wanted`` texts for each request: attempt 0 gets the best ones, attempt 1 those after them."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> tuple[str, ...]:
        known = {folded(text) for text in (*request.texts, *request.rivals)}
        lists = _versions(request)
        # The lists in an order drawn by the seed; within each the best stays first.
        order = random_stream(request.seed, "rules", request.image, request.purpose).permutation(len(lists))
        dealt = chain.from_iterable(zip_longest(*(lists[at] for at in order)))
        # A version of a caption without a capital or a full stop would lack them too.
        new = {folded(text): sentence(text.strip()) for text in dealt if text and folded(text) not in known}
        first = request.attempt * request.wanted
        return tuple(new.values())[first : first + request.wanted]


def _versions(request: Request) -> list[list[str]]:
    """For each present text its new versions, the best first; without one all sentences, dealt out."""
    contents = ImageContents.of(request.objects)
    if request.purpose == SHARPER:
        return [specialise(text, contents, request.rivals) for text in request.texts]
    if request.purpose == VAGUER:
        return [generalise(text, contents) for text in request.texts]
    if request.purpose == CONFUSABLE:
        original = ImageContents.of(request.original_objects)
        return [_transferred(text, original, contents) for text in request.texts]
    sentences = _describe(contents, request.rivals)
    # Dealt like the versions of several texts, so that neighbours in the list do not all come at once.
    return [sentences[start :: request.wanted] for start in range(request.wanted)]


def _transferred(text: str, original: ImageContents, contents: ImageContents) -> list[str]:
    turns = range(max(1, len(contents.groups)))
    versions = dict.fromkeys(transfer(text, original, contents, turn) for turn in turns)
    return [new for new in versions if new and fits(new, contents) and not fits(new, original)]


def _describe(contents: ImageContents, rivals: Sequence[str]) -> list[str]:
    """Sentences that are true of an image, those first that name what the rivals do not."""
    reader = reader_of(contents)
    mentioned = [reader.mentions(rival) for rival in rivals]
    groups = sorted(contents.groups, key=lambda group: sum(group.name in names for names in mentioned))
    if not groups:
        return []
    sentences: list[str] = []
    for size in (2, 1, 3):
        for chosen in combinations(groups, min(size, len(groups))):
            sentences += _about(chosen, contents.setting_phrase)
    sentences += _together(groups, contents.setting_phrase)
    return list(dict.fromkeys(sentences))


def _about(groups: Sequence[ObjectGroup], at: str) -> Iterator[str]:
    rich = listing([_doing(group) for group in groups])
    plain = listing([group.phrase(colour=False) for group in groups])
    yield f"{rich}{at}"
    yield f"{there_is(groups)} {rich}{at}"
    yield f"a picture of {rich}{at}"
    if any(group.position for group in groups):
        yield listing([group.phrase() + group.position for group in groups])
    yield plain
    yield f"{plain}{at}" if at else f"a view of {plain}"


def _doing(group: ObjectGroup) -> str:
    """With what is written on it, or what it is doing."""
    if group.text:
        return f'{group.phrase()} that says "{group.text}"'
    return f"{group.phrase()} {group.action}" if group.action else group.phrase()


def _together(groups: Sequence[ObjectGroup], at: str) -> Iterator[str]:
    """How two single objects lie to each other."""
    for first, other in combinations(groups, 2):
        if first.single and other.single and first.single.box and other.single.box:
            relation = spatial_relation(first.single.box, other.single.box)
            if relation is not None:
                yield f"{first.phrase()} {_RELATION_PHRASES[relation]} {other.phrase()}{at}"
