"""Every value of every JSON format replaced by an odd one: it loads, or raises an error with a fix; nothing crashes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosslens.core import CrosslensError
from crosslens.data import load_dataset, read_qrels, read_run
from tests.data import files
from tests.data.files import write, write_json, write_tar
from tests.data.reader_samples import json_sample, json_samples

ODD: tuple[Any, ...] = (None, True, -1, 10**30, 1.5, float("nan"), " ", "x", [None], {"x": None})


def value_paths(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON document."""
    yield path
    pairs = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in pairs:
        yield from value_paths(value, (*path, key))


class Thinned:
    """In each place every so many-th odd value is tried, in the next place others; the slow tests try all."""

    step = 1


@pytest.fixture(autouse=True, params=[10, pytest.param(1, marks=pytest.mark.slow)])
def _thinned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thinned, "step", request.param)


def variants(content: Any) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    for place, path in enumerate(value_paths(content)):
        for odd in ODD[place % Thinned.step :: Thinned.step]:
            changed = copy.deepcopy(content)
            if not path:
                yield path, odd, odd
                continue
            inner = changed
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = odd
            yield path, odd, changed


def loads_or_explains(read: Callable[[], object], what: str) -> None:
    fix: str | None = "nothing to fix"
    try:
        read()
    except CrosslensError as error:
        fix = error.fix
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert fix, f"{what} is refused without a fix"


LINES = [
    {
        "image": 1,
        "captions": ["A dog", {"text": "The dog", "caption_id": "x", "mood": 3}],
        "category": "animal",
        "objects": [{"name": "dog", "box": [1, 2, 3, 4], "attributes": ["brown"], "synset": "dog.n.01"}],
        "relations": [{"subject": "1/0", "predicate": "near", "object": "1/0"}],
    },
    {"image": 3, "text": "A cat", "mood": 1},
]
FORMATS: dict[str, tuple[Any, Callable[[Path], object]]] = {
    "run": ({"q1": {"a": 0.5, "b": 1}, "q2": ["a", 3]}, read_run),
    "qrels": ({"q1": {"a": 0.5, "b": 1}, "q2": ["a", 3]}, read_qrels),
}


@pytest.mark.parametrize("name", [*json_samples(), *FORMATS])
def test_json_files(name: str, tmp_path: Path) -> None:
    if name in FORMATS:
        content, read = FORMATS[name]
    else:
        content, read = json_sample(name, tmp_path), lambda path: load_dataset(name, captions=path)
    for path, odd, changed in variants(content):
        file = write_json(tmp_path / "odd.json", changed)
        loads_or_explains(lambda file=file: read(file), f"{name} {path} = {odd!r}")  # type: ignore[misc]


def test_coco_instances(tmp_path: Path) -> None:
    captions = write_json(tmp_path / "captions.json", files.coco())
    for path, odd, changed in variants(files.instances()):
        file = write_json(tmp_path / "odd.json", changed)
        read = lambda file=file: load_dataset("coco", captions=captions, instances=file)  # noqa: E731
        loads_or_explains(read, f"{path} = {odd!r}")


@pytest.mark.parametrize("part", ["image_data", "region_descriptions", "objects", "attributes", "relationships"])
def test_visual_genome(part: str, tmp_path: Path) -> None:
    folder = files.visual_genome(tmp_path)
    content = json.loads((folder / f"{part}.json").read_text())
    for path, odd, changed in variants(content):
        write_json(folder / f"{part}.json", changed)
        loads_or_explains(lambda: load_dataset("visual_genome", folder=folder), f"{part} {path} = {odd!r}")


def test_json_lines(tmp_path: Path) -> None:
    for path, odd, changed in variants(LINES):
        if isinstance(changed, list):
            file = write(tmp_path / "odd.jsonl", "".join(f"{json.dumps(row)}\n" for row in changed))
            loads_or_explains(lambda file=file: load_dataset(file), f"{path} = {odd!r}")  # type: ignore[misc]


def test_webdataset_members(tmp_path: Path) -> None:
    for path, odd, changed in variants({"caption": "A dog", "width": 3}):
        shard = write_tar(tmp_path / "s.tar", {"1.jpg": b"", "1.json": json.dumps(changed)})
        read = lambda shard=shard: load_dataset("webdataset", shards=shard)  # noqa: E731
        loads_or_explains(read, f"{path} = {odd!r}")
