"""A generator asked in small parts, or a log that answers in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosslens.build.generators import Generator, Request
from crosslens.core.errors import InputError
from crosslens.core.fingerprint import fingerprint
from crosslens.core.progress import Progress, Silent, stage

_AT_ONCE = 16  # requests handed over together


class Answers:
    """What a generator answers; with ``known`` (answers by key, as a decision log holds them) it is never asked.

    Keeping answers while a build runs is the business of :class:`crosslens.build.generators.Recorded`.
    """

    def __init__(
        self,
        generator: Generator,
        *,
        known: Mapping[str, tuple[str, ...]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.generator, self._known = generator, known
        self._progress = progress or Silent()

    def key(self, request: Request) -> str:
        """A hash of the request and of who is asked."""
        about = (self.generator.name, self.generator.revision, request.key(picture=self.generator.sees_pictures))
        return fingerprint("answer", {"to": about})

    def __call__(self, requests: Sequence[Request], label: str) -> list[tuple[str, tuple[str, ...]]]:
        """For each request its key and the texts."""
        keys = [self.key(request) for request in requests]
        if self._known is not None:
            return [(key, self._remembered(key, request)) for key, request in zip(keys, requests, strict=True)]
        texts: list[tuple[str, ...]] = []
        with stage(self._progress, label, len(requests)):
            for start in range(0, len(requests), _AT_ONCE):
                texts += self.generator.generate(requests[start : start + _AT_ONCE])
                self._progress.advance(min(_AT_ONCE, len(requests) - start))
        return list(zip(keys, texts, strict=True))

    def _remembered(self, key: str, request: Request) -> tuple[str, ...]:
        assert self._known is not None
        if key not in self._known:
            raise InputError(
                f"the log has no answer to a request for image {request.image!r} ({request.purpose})",
                expected="the candidates, encoders and settings of the first build",
                fix="pass the same candidates; or build anew, without --repeat",
            )
        return self._known[key]
