"""``rules``: descriptions by rule, from annotations and the descriptions there are. No model, no network, no chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest

from crosslens.build.generators.annotations import ImageContents
from crosslens.build.generators.describe import describe
from crosslens.build.generators.generalise import generalise
from crosslens.build.generators.protocol import (
    CONFUSABLE,
    DESCRIBE,
    GENERATORS,
    SHARPER,
    VAGUER,
    Generator,
    GeneratorSettings,
    Request,
)
from crosslens.build.generators.specialise import specialise
from crosslens.build.generators.transfer import fits, transfer
from crosslens.core import UsageError, random_stream


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
    revision = "1"
    sees_pictures = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """The next ``wanted`` texts for each request: attempt 0 gets the best ones, attempt 1 those after them."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> tuple[str, ...]:
        known = {_folded(text) for text in (*request.texts, *request.rivals)}
        lists = _METHODS[request.purpose](request)
        dealt = chain.from_iterable(zip_longest(*_shuffled(lists, request)))
        new = {_folded(text): text for text in dealt if text and _folded(text) not in known}
        first = request.attempt * request.wanted
        return tuple(new.values())[first : first + request.wanted]


def _specialised(request: Request) -> list[list[str]]:
    contents = ImageContents.of(request.objects)
    return [specialise(text, contents, request.rivals) for text in request.texts]


def _generalised(request: Request) -> list[list[str]]:
    contents = ImageContents.of(request.objects)
    return [generalise(text, contents) for text in request.texts]


def _describe(request: Request) -> list[list[str]]:
    sentences = describe(ImageContents.of(request.objects), request.rivals)
    # Dealt like the versions of several texts, so that neighbours in the list do not all come at once.
    return [sentences[start :: request.wanted] for start in range(request.wanted)]


def _confusable(request: Request) -> list[list[str]]:
    original, contents = ImageContents.of(request.original_objects), ImageContents.of(request.objects)
    lists = []
    for text in request.texts:
        turns = range(max(1, len(contents.groups)))
        transferred = dict.fromkeys(transfer(text, original, contents, turn) for turn in turns)
        lists.append([new for new in transferred if new and fits(new, contents) and not fits(new, original)])
    return lists


_METHODS: dict[str, Callable[[Request], list[list[str]]]] = {
    SHARPER: _specialised,
    VAGUER: _generalised,
    DESCRIBE: _describe,
    CONFUSABLE: _confusable,
}


def _shuffled(lists: list[list[str]], request: Request) -> list[list[str]]:
    """The lists in an order drawn by the seed; within each the best stays first."""
    order = random_stream(request.seed, "rules", request.image, request.purpose).permutation(len(lists))
    return [lists[at] for at in order]


def _folded(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".!? ")
