"""Answers of an endpoint that are kept: asked once, then read from a folder; without an endpoint only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crosslens.core.chat.endpoint import Endpoint, Message
from crosslens.core.errors import InputError
from crosslens.core.hashing import fingerprint
from crosslens.core.input_files.json_text import read_json_file
from crosslens.core.integrity import unsealed
from crosslens.core.storage import write_header


class RecordedAnswers:
    """One file per request in ``folder``, named by a hash of the model and of everything that was sent."""

    def __init__(self, folder: str | Path, model: str) -> None:
        self.folder, self.model = Path(folder), model

    def known(self, messages: Sequence[Message], seed: int) -> str | None:
        """The recorded answer; None where the request was never sent."""
        file = self._file(messages, seed)
        if not file.is_file():
            return None
        content = read_json_file(file)
        content = unsealed(content, file)[0] if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(content.get("answer"), str):
            raise InputError("not a recorded answer", file=file, fix="remove the file: the request is sent again")
        return str(content["answer"])

    def ask(self, endpoint: Endpoint | None, messages: Sequence[Message], seed: int) -> str:
        """The recorded answer, or else the endpoint's, which is recorded."""
        answer = self.known(messages, seed)
        if answer is not None:
            return answer
        if endpoint is None:
            raise InputError(
                "no answer to this request is recorded", file=self.folder,
                expected="the answers to the same items, prompt and pictures", fix="name an endpoint that can be asked",
            )  # fmt: skip
        answer = endpoint.ask(messages, seed)
        file = self._file(messages, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_header(file, {"model": self.model, "answer": answer})
        return answer

    def _file(self, messages: Sequence[Message], seed: int) -> Path:
        key = fingerprint("chat answer", {"model": self.model, "messages": list(messages), "seed": seed})
        return self.folder / key[:2] / f"{key}.json"
