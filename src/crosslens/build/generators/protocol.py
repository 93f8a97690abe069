"""What every description generator is: requests in, texts out, and a name that identifies what wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from crosslens.build.generators.contents import ObjectAnnotation
from crosslens.core import (
    ConflictError,
    InputError,
    Notify,
    Registry,
    UnknownNameError,
    UsageError,
    argument,
    to_stderr,
)
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import (
    file_fingerprint,
    fingerprint,
    offline as offline_scope,
    read_json_file,
    remove_abandoned,
    without_hashes,
    write_header,
)

SHARPER, VAGUER, DESCRIBE, CONFUSABLE = "sharper", "vaguer", "describe", "confusable"
PURPOSES = (SHARPER, VAGUER, DESCRIBE, CONFUSABLE)


@dataclass(frozen=True)
class Request:
    """One image that needs descriptions.

    ``texts``   the present descriptions: of this image, or of the original when a confusable is described
    ``purpose`` ``sharper``: they fit too many other images; ``vaguer``: they identify it too easily;
                ``describe``: there are none yet; ``confusable``: change ``texts`` as little as possible, so that they
                fit this image and no longer the original
    ``objects`` what is annotated in the image; ``original_objects`` in the original (confusables only)
    ``rivals``  descriptions of the most similar other images, which the new ones should not fit
    ``attempt`` the number of earlier attempts: each should give something else
    """

    image: str
    file: Path | None
    task: str
    texts: tuple[str, ...]
    purpose: str
    wanted: int
    objects: tuple[ObjectAnnotation, ...]
    rivals: tuple[str, ...]
    original_objects: tuple[ObjectAnnotation, ...] = ()
    attempt: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.purpose not in PURPOSES:
            raise UnknownNameError("purpose", self.purpose, PURPOSES)
        if self.wanted < 1:
            raise UsageError(f"wanted = {self.wanted} for image {self.image!r}", fix="wanted must be at least 1")

    def key(self, *, picture: bool = True) -> str:
        """A hash of all that a generator sees: of the image file its bytes, not its path."""
        picture_file = self.file if picture and self.file is not None and self.file.is_file() else None
        parts = {name: value for name, value in vars(self).items() if name != "file"}
        for name in ("objects", "original_objects"):
            parts[name] = [vars(annotation) for annotation in parts[name]]
        return fingerprint("description request", {**parts, "file": picture_file and file_fingerprint([picture_file])})


@runtime_checkable
class Generator(Protocol):
    """Something that writes descriptions.

    ``revision`` changes whenever the same request may get another answer than before. ``sees_pictures``: the answer
    depends on the image itself, not only on texts and annotations.
    """

    name: str
    revision: str
    sees_pictures: bool

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One tuple per request, in their order: at most ``wanted`` texts, possibly none."""


def folded(text: str) -> str:
    """A text without what makes no difference: case, spaces, and the mark at its end."""
    return " ".join(text.lower().split()).rstrip(".!? ")


def identity(generator: Generator) -> dict[str, object]:
    """What tells the answers of a generator from those of another."""
    return {"name": generator.name, "revision": generator.revision, "sees_pictures": generator.sees_pictures}


@dataclass(frozen=True)
class GeneratorSettings:
    """How a generator is loaded: the model of an endpoint, whether the network may be used, and options of its kind."""

    model: str | None = None
    offline: bool = False
    notify: Notify = to_stderr
    options: dict[str, Any] = field(default_factory=dict)


GENERATORS: Registry[Callable[[str, GeneratorSettings], Generator]] = Registry(
    "description generator", "generators", ("crosslens.build.generators",)
)
"""Kinds of generators. A generator is written ``kind`` or ``kind:source``."""


def load_generator(
    generator: str | Generator,
    *,
    model: str | None = None,
    offline: bool = False,
    notify: Notify = to_stderr,
    **options: Any,
) -> Generator:
    """The generator that ``rules`` or ``http:http://127.0.0.1:8000/v1?model=NAME`` stands for.

    ``model`` names the model of an endpoint, if its address does not; ``offline`` forbids the network (this machine's
    own addresses stay allowed); further ``options`` belong to the kind. A generator is used as it is.
    """
    if not isinstance(generator, str):
        return generator
    kind, _, source = generator.partition(":")
    entry = GENERATORS[kind]
    if entry.details.get("needs_source", False) != bool(source):
        example = entry.details.get("example", kind)
        problem = f"{kind} takes no source" if source else f"{kind} needs a source"
        raise UsageError(f"the generator {generator!r}: {problem}", fix=f"for example {example}")
    with offline_scope(offline):
        return entry.value(source, GeneratorSettings(model, offline, notify, options))


_HEADER = "generator.json"
_BATCH = 16  # requests that a generator gets at once


class Recorded:
    """Answers from the record; missing ones come from the generator and are written as they arrive.

    Without a generator it only replays: a request that was never answered is an error. One folder holds the answers of
    one generator; a request is identified by its content, so that moved images and another order find their answers.
    """

    def __init__(self, generator: Generator | None, folder: str | Path) -> None:
        self._generator, self.folder = generator, Path(folder)
        header: dict[str, Any] | None = None
        file = self.folder / _HEADER
        if file.exists():
            try:
                stored, _ = without_hashes(read_json_file(file), file)
                header = {name: stored[name] for name in ("name", "revision", "sees_pictures")}
            except (InputError, LookupError, TypeError, AttributeError):
                raise InputError("not the header of recorded answers", file=file, fix="remove the folder") from None
        if generator is None and header is None:
            raise InputError(
                "no recorded answers", file=self.folder, expected=_HEADER, fix="check the path, or pass a generator"
            )
        if generator is not None and header is not None and header != identity(generator):
            raise ConflictError(
                f"{self.folder} contains answers of {header['name']} ({header['revision']}), not of "
                f"{generator.name} ({generator.revision})",
                fix="record into another folder, or remove this one",
            )
        facts: Any = header if generator is None else identity(generator)
        self.name, self.revision = str(facts["name"]), str(facts["revision"])
        self.sees_pictures = bool(facts["sees_pictures"])
        self.asked = 0
        """How many requests went to the generator."""

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        files = []
        for request in requests:
            facts = {"generator": (self.name, self.revision), "request": request.key(picture=self.sees_pictures)}
            key = fingerprint("answer", facts)
            files.append(self.folder / key[:2] / f"{key}.json")
        answers = {file: _read(file) for file in files if file.exists()}
        missing = {file: request for file, request in zip(files, requests, strict=True) if file not in answers}
        if missing:
            self._ask(list(missing.values()), list(missing))
        return [answers[file] if file in answers else _read(file) for file in files]

    def _ask(self, requests: Sequence[Request], files: Sequence[Path]) -> None:
        if self._generator is None:
            first = requests[0]
            raise InputError(
                f"no answer is recorded for image {first.image!r} ({first.purpose}, attempt {first.attempt})",
                file=self.folder,
                expected="the answers of the same build: same data, same settings, same version",
                fix="pass a generator, or repeat the build exactly",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(self.folder)
        write_header(self.folder / _HEADER, identity(self))
        generator, stream = self._generator, getattr(self._generator, "stream", None)
        singly = ((at, generator.generate([request])[0]) for at, request in enumerate(requests))
        for at, answer in stream(requests) if stream else singly:
            self.asked += 1
            request = requests[at]
            facts = {"image": request.image, "purpose": request.purpose, "attempt": request.attempt}
            write_header(files[at], {"key": files[at].stem, **facts, "texts": list(answer)})


def _read(file: Path) -> tuple[str, ...]:
    fix = "remove the file: the request is sent again"
    try:
        content = read_json_file(file)
    except InputError:
        content = None
    try:
        answer, _ = without_hashes(content, file)
        texts = answer["texts"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise TypeError
    except (LookupError, TypeError, AttributeError):
        raise InputError("not a recorded answer", file=file, fix=fix) from None
    if answer.get("key", file.stem) != file.stem:
        raise InputError("the answer to another request", file=file, fix=fix)
    return tuple(texts)


class AnswerSource:
    """A generator's answers in batches; with ``known`` (answers by key, from a decision log) it is never used.

    :class:`Recorded` keeps answers while a build runs.
    """

    def __init__(
        self, generator: Generator, known: Mapping[str, tuple[str, ...]] | None = None, progress: Progress | None = None
    ) -> None:
        self.generator, self._known, self._progress = generator, known, shown_progress(progress)

    def key(self, request: Request) -> str:
        parts = (self.generator.name, self.generator.revision, request.key(picture=self.generator.sees_pictures))
        return fingerprint("answer", {"to": parts})

    def __call__(self, requests: Sequence[Request], label: str) -> list[tuple[str, tuple[str, ...]]]:
        keys = [self.key(request) for request in requests]
        if self._known is not None:
            for key, request in zip(keys, requests, strict=True):
                if key not in self._known:
                    raise InputError(
                        f"the log has no answer to a request for image {request.image!r} ({request.purpose})",
                        expected="the candidates, encoders and settings of the first build",
                        fix=f"pass the same candidates; or build anew, without {argument('repeat')}",
                    )
            return [(key, self._known[key]) for key in keys]
        texts: list[tuple[str, ...]] = []
        with stage(self._progress, label, len(requests)):
            for start in range(0, len(requests), _BATCH):
                texts += self.generator.generate(requests[start : start + _BATCH])
                self._progress.advance(min(_BATCH, len(requests) - start))
        return list(zip(keys, texts, strict=True))
