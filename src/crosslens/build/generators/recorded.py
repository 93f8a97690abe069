"""A generator whose answers are kept: a killed build loses none, and a finished one can be repeated without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from crosslens.build.generators.generator import Generator, Request
from crosslens.core.atomic import sweep, write_text
from crosslens.core.errors import ConflictError, InputError
from crosslens.core.fingerprint import fingerprint

_HEADER = "generator.json"


class Recorded:
    """Answers from the record; what it lacks is asked of the generator, and written down as it arrives.

    Without a generator it only replays: a request that was never answered is an error. One folder holds the answers of
    one generator; a request is known by its content, so that moved pictures and another order find their answers.
    """

    def __init__(self, generator: Generator | None, folder: str | Path) -> None:
        self._generator, self.folder = generator, Path(folder)
        header = self._header()
        if generator is None:
            if header is None:
                raise InputError(
                    "no recorded answers", file=self.folder, expected=_HEADER, fix="check the path, or pass a generator"
                )
        else:
            own = {"name": generator.name, "revision": generator.revision, "sees_pictures": generator.sees_pictures}
            if header is not None and header != own:
                raise ConflictError(
                    f"{self.folder}: these are the answers of {header['name']} ({header['revision']}), not of "
                    f"{generator.name} ({generator.revision})",
                    fix="record into another folder, or remove this one",
                )
            header = own
        self.name, self.revision = str(header["name"]), str(header["revision"])
        self.sees_pictures = bool(header["sees_pictures"])
        self.asked = 0
        """How many requests had to be asked of the generator."""

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        """One answer per request, in their order."""
        files = [self._file(request) for request in requests]
        answers = [_read(file) for file in files]
        first: dict[Path, int] = {}  # the same request twice is asked once
        for at, file in enumerate(files):
            if answers[at] is None:
                first.setdefault(file, at)
        missing = list(first.values())
        if missing:
            self._ask([requests[at] for at in missing], [files[at] for at in missing])
        return [answer if answer is not None else _known(file) for answer, file in zip(answers, files, strict=True)]

    def _ask(self, requests: Sequence[Request], files: Sequence[Path]) -> None:
        if self._generator is None:
            raise InputError(
                f"no answer is recorded for image {requests[0].image!r} ({requests[0].purpose}, attempt "
                f"{requests[0].attempt})",
                file=self.folder,
                expected="the answers of the same build: same data, same settings, same version",
                fix="pass a generator, or repeat the build exactly",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        own = {"name": self.name, "revision": self.revision, "sees_pictures": self.sees_pictures}
        write_text(self.folder / _HEADER, json.dumps(own, indent=2) + "\n")
        for at, answer in _arriving(self._generator, requests):
            self.asked += 1
            request = requests[at]
            about = {"image": request.image, "purpose": request.purpose, "attempt": request.attempt}
            write_text(files[at], json.dumps({**about, "texts": list(answer)}, ensure_ascii=False, indent=2) + "\n")

    def _file(self, request: Request) -> Path:
        request_key = request.key(picture=self.sees_pictures)
        key = fingerprint("answer", {"generator": (self.name, self.revision), "request": request_key})
        return self.folder / key[:2] / f"{key}.json"

    def _header(self) -> dict[str, object] | None:
        file = self.folder / _HEADER
        if not file.exists():
            return None
        try:
            header = json.loads(file.read_text(encoding="utf-8"))
            return {name: header[name] for name in ("name", "revision", "sees_pictures")}
        except (ValueError, LookupError, TypeError):
            raise InputError("not the header of recorded answers", file=file, fix="remove the folder") from None


def _arriving(generator: Generator, requests: Sequence[Request]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Answers one by one: as they come where the generator can tell, otherwise asked for singly."""
    stream = getattr(generator, "stream", None)
    if stream is not None:
        yield from stream(requests)
        return
    for at, request in enumerate(requests):
        yield at, generator.generate([request])[0]


def _read(file: Path) -> tuple[str, ...] | None:
    try:
        content = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        texts = json.loads(content)["texts"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise TypeError
    except (ValueError, LookupError, TypeError):
        raise InputError("not a recorded answer", file=file, fix="remove the file: it will be asked again") from None
    return tuple(texts)


def _known(file: Path) -> tuple[str, ...]:
    answer = _read(file)
    assert answer is not None, file
    return answer
