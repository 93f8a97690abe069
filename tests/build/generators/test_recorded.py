"""Answers that are kept: asked once, found again, replayed without a generator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from crosslens.build import DESCRIBE, ObjectAnnotation, Recorded, Request
from crosslens.core import ConflictError, InputError


class Counting:
    """Answers with a number that never repeats, and dies when told to."""

    name, revision = "counting", "1"

    def __init__(self, dies_at: int | None = None, sees_pictures: bool = False) -> None:
        self.given, self.dies_at, self.sees_pictures = 0, dies_at, sees_pictures

    def generate(self, requests: Sequence[Request]) -> list[tuple[str, ...]]:
        answers = []
        for request in requests:
            if self.given == self.dies_at:
                raise KeyboardInterrupt
            self.given += 1
            answers.append((f"{request.image}: answer {self.given}",))
        return answers


def request(image: str, **changes: object) -> Request:
    values = {"texts": (), "objects": (ObjectAnnotation("dog", box=(0.1, 0.2, 0.3, 0.4)),), "rivals": (), "file": None}
    return Request(image, task="", purpose=DESCRIBE, wanted=1, **{**values, **changes})  # type: ignore[arg-type]


def test_asked_once_and_found_in_any_order(tmp_path: Path) -> None:
    generator = Counting()
    recorded = Recorded(generator, tmp_path)
    first = recorded.generate([request("a"), request("b"), request("a")])
    assert first == [("a: answer 1",), ("b: answer 2",), ("a: answer 1",)]
    again = Recorded(generator, tmp_path)
    assert again.generate([request("b"), request("c"), request("a")]) == [first[1], ("c: answer 3",), first[0]]
    assert (recorded.asked, again.asked, generator.given) == (2, 1, 3)


def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    requests = [request(image) for image in "abcde"]
    with pytest.raises(KeyboardInterrupt):
        Recorded(Counting(dies_at=3), tmp_path).generate(requests)
    generator = Counting()
    answers = Recorded(generator, tmp_path).generate(requests)
    assert generator.given == 2
    assert [answer[0][:2] for answer in answers] == ["a:", "b:", "c:", "d:", "e:"]
    assert Recorded(None, tmp_path).generate(requests) == answers


def test_answers_are_written_as_they_arrive(tmp_path: Path) -> None:
    class Streaming(Counting):
        def stream(self, requests: Sequence[Request]) -> object:
            yield 1, ("second first",)
            assert len(list(tmp_path.rglob("??/*.json"))) == 1
            yield 0, ("then the first",)

    recorded = Recorded(Streaming(), tmp_path)
    assert recorded.generate([request("a"), request("b")]) == [("then the first",), ("second first",)]


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": 1}, {"seed": 1}, {"texts": ("A dog.",)}, {"rivals": ("A dog.",)},
        {"objects": (ObjectAnnotation("dog", box=(0.1, 0.2, 0.3, 0.5)),)},
        {"original_objects": (ObjectAnnotation("dog"),)},
    ],
)  # fmt: skip
def test_another_request_is_another_question(tmp_path: Path, changes: dict[str, object]) -> None:
    recorded = Recorded(Counting(), tmp_path)
    assert recorded.generate([request("a")]) != recorded.generate([request("a", **changes)])


def test_a_picture_counts_by_its_bytes_and_only_if_it_is_seen(tmp_path: Path) -> None:
    here, there = tmp_path / "here.png", tmp_path / "there.png"
    for file in (here, there):
        file.write_bytes(b"one")
    seeing = Recorded(Counting(sees_pictures=True), tmp_path / "seeing")
    blind = Recorded(Counting(), tmp_path / "blind")
    first = seeing.generate([request("a", file=here)])
    assert seeing.generate([request("a", file=there)]) == first
    there.write_bytes(b"two")
    assert seeing.generate([request("a", file=there)]) != first
    assert blind.generate([request("a", file=here)]) == blind.generate([request("a", file=there)])


def test_replaying_what_was_never_asked_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no recorded answers"):
        Recorded(None, tmp_path / "nothing")
    Recorded(Counting(), tmp_path).generate([request("a")])
    with pytest.raises(InputError, match=r"no answer is recorded for image 'b' \(describe, attempt 0\)"):
        Recorded(None, tmp_path).generate([request("b")])


def test_two_generators_do_not_share_a_folder(tmp_path: Path) -> None:
    Recorded(Counting(), tmp_path).generate([request("a")])
    newer = Counting()
    newer.revision = "2"
    with pytest.raises(ConflictError, match=r"answers of counting \(1\), not of counting \(2\)"):
        Recorded(newer, tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"texts": "x"}', '{"texts": [1]}'])
def test_a_damaged_answer_is_named(tmp_path: Path, content: str) -> None:
    Recorded(Counting(), tmp_path).generate([request("a")])
    (file,) = tmp_path.rglob("??/*.json")
    file.write_text(content)
    with pytest.raises(InputError, match="not a recorded answer") as caught:
        Recorded(Counting(), tmp_path).generate([request("a")])
    assert file.name in str(caught.value)


def test_an_edited_answer_and_that_to_another_request_are_refused(tmp_path: Path) -> None:
    Recorded(Counting(), tmp_path).generate([request("a")])
    (file,) = tmp_path.rglob("??/*.json")
    content = file.read_text()
    file.write_text(content.replace('"attempt": 0', '"attempt": 1'))
    with pytest.raises(InputError, match="the file has changed since it was written"):
        Recorded(Counting(), tmp_path).generate([request("a")])
    file.unlink()
    Recorded(Counting(), tmp_path).generate([request("b")])
    (other_answer,) = tmp_path.rglob("??/*.json")
    file.write_text(other_answer.read_text())
    with pytest.raises(InputError, match="the answer to another request"):
        Recorded(Counting(), tmp_path).generate([request("a")])


def test_a_damaged_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "generator.json").write_text("{}")
    with pytest.raises(InputError, match=r"generator\.json"):
        Recorded(Counting(), tmp_path)
