"""``rules``: descriptions by rule, from annotations and the descriptions there are. No model, no network, no chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, zip_longest

from crosslens.build.generators.blurring import blur
from crosslens.build.generators.contents import Contents
from crosslens.build.generators.generator import (
    CONFUSABLE,
    DESCRIBE,
    GENERATORS,
    SHARPER,
    VAGUER,
    Generator,
    Request,
    Settings,
)
from crosslens.build.generators.retelling import fits, retell
from crosslens.build.generators.sharpening import sharpen
from crosslens.build.generators.telling import tell
from crosslens.core.errors import UsageError
from crosslens.core.seeds import stream


@GENERATORS.register("rules", example="rules")
def load_rules(source: str, settings: Settings) -> Generator:
    """Rewrites by rule, from annotated objects: built in, needs no model, says only what annotations vouch for."""
    if settings.model or settings.options:
        named = ", ".join(settings.options) or "model"
        raise UsageError(f"the generator rules has no option {named}", fix="leave it out")
    return Rules()


class Rules:
    """The rule-based generator; the same request always gets the same answer."""

    name = "rules"
    revision = "1"
    sees_pictures = False

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """The next ``wanted`` texts for each request: attempt 0 gets the best ones, attempt 1 those after them."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> tuple[str, ...]:
        known = {_folded(text) for text in (*request.texts, *request.rivals)}
        lists = _WAYS[request.purpose](request)
        dealt = chain.from_iterable(zip_longest(*_shuffled(lists, request)))
        new = {_folded(text): text for text in dealt if text and _folded(text) not in known}
        first = request.attempt * request.wanted
        return tuple(new.values())[first : first + request.wanted]


def _sharper(request: Request) -> list[list[str]]:
    contents = Contents.of(request.objects)
    return [sharpen(text, contents, request.rivals) for text in request.texts]


def _vaguer(request: Request) -> list[list[str]]:
    contents = Contents.of(request.objects)
    return [blur(text, contents) for text in request.texts]


def _describe(request: Request) -> list[list[str]]:
    found = tell(Contents.of(request.objects), request.rivals)
    # Dealt like the versions of several texts, so that neighbours in the list do not all come at once.
    return [found[start :: request.wanted] for start in range(request.wanted)]


def _confusable(request: Request) -> list[list[str]]:
    original, contents = Contents.of(request.original_objects), Contents.of(request.objects)
    lists = []
    for text in request.texts:
        turns = range(max(1, len(contents.groups)))
        told = dict.fromkeys(retell(text, original, contents, turn) for turn in turns)
        lists.append([new for new in told if new and fits(new, contents) and not fits(new, original)])
    return lists


_WAYS: dict[str, Callable[[Request], list[list[str]]]] = {
    SHARPER: _sharper,
    VAGUER: _vaguer,
    DESCRIBE: _describe,
    CONFUSABLE: _confusable,
}


def _shuffled(lists: list[list[str]], request: Request) -> list[list[str]]:
    """The lists in an order of the seed's; within each the best stays first."""
    order = stream(request.seed, "rules", request.image, request.purpose).permutation(len(lists))
    return [lists[at] for at in order]


def _folded(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".!? ")
