"""Folders that crosslens wrote, with every entry of their headers and every column of their tables changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosslens.core import CrosslensError
from crosslens.pipeline import EvaluateOptions, InputOptions, Recipe, run_recipe
from crosslens.values import Dataset, Embeddings, Ranking, Relevance, Run
from tests.hostile.conftest import Call, Refuses
from tests.hostile.inputs import JSON_VALUES, SPECIAL, TEXTS

DATASET = Dataset.of({"a": ["A dog.", "The dog."], "b": ["A cat."]})


def _write(folder: Path) -> None:
    DATASET.save(folder / "dataset")
    Embeddings.of(np.eye(4, dtype=np.float32)).save(folder / "embeddings")
    Relevance.from_dataset(DATASET).save(folder / "relevance")
    np.save(folder / "scores.npy", np.array([[3.0, 2, 1], [1, 2, 3]]))
    inputs = InputOptions(scores=str(folder / "scores.npy"))
    run_recipe(
        Recipe(dataset=str(folder / "dataset"), inputs=inputs, options=EvaluateOptions(resamples=10)), folder / "run"
    )


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    _write(folder)
    return folder


LOAD: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "dataset": ("header.json", Dataset.load),
    "embeddings": ("header.json", Embeddings.load),
    "relevance": ("header.json", Relevance.load),
    "run": ("run.json", Run.load),
    "run/ranking-i2t": ("header.json", Ranking.load),
}
"""Folder → its header, and what loads it."""
HEADERS = {
    "dataset": ("format", "version", "name", "card", "fingerprint", "card.notes", "card.other"),
    "embeddings": ("format", "version", "model", "kind"),
    "relevance": ("format", "version", "source"),
    "run": ("format", "version", "name", "metrics", "provenance", "metrics.i2t/Hit@1", "metrics.i2t/Hit@1.mean",
            "metrics.i2t/Hit@1.statistic", "metrics.i2t/Hit@1.level", "metrics.x", "metrics.x/y"),
    "run/ranking-i2t": ("format", "version", "direction", "complete"),
}  # fmt: skip
FILES = {
    kind: [*LOAD[kind][:1], *tables]
    for kind, tables in {
        "dataset": ["images.parquet", "captions.parquet"],
        "embeddings": ["ids.parquet", "vectors.npy"],
        "relevance": ["query_ids.parquet", "offsets.npy", "items.npy"],
        "run": ["queries.parquet", "recipe.toml"],
        "run/ranking-i2t": ["query_ids.parquet", "top_items.npy", "above.npy", "known.npy"],
    }.items()
}


@pytest.fixture
def copied(stored: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a stored folder to change."""

    def copy(kind: str) -> Path:
        import shutil

        return Path(shutil.copytree(stored / kind, tmp_path / Path(kind).name))

    return copy


def _use(value: Any) -> None:
    """What viewers do with a loaded value."""
    str(value)
    if isinstance(value, Run):
        value.queries()
        _ = value.fingerprint
        for ranking in value.rankings.values():
            ranking.top(ranking.query_ids[0])


@pytest.mark.parametrize("value", JSON_VALUES, ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize(("kind", "entry"), [(kind, entry) for kind, entries in HEADERS.items() for entry in entries])
def test_header_entry(kind: str, entry: str, value: Any, copied: Callable[[str], Path]) -> None:
    """It is refused, or it does not matter: no entry ends in a traceback."""
    name, load = LOAD[kind]
    file = copied(kind) / name
    content = json.loads(file.read_text(encoding="utf-8"))
    *outer, last = entry.split(".")
    inner = content
    for key in outer:
        inner = inner[key]
    inner[last] = value
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        loaded = load(file.parent)
    except CrosslensError as error:
        assert str(file.parent) in str(error)  # noqa: PT017  (either of two outcomes is right)
    else:
        _use(loaded)


@pytest.mark.parametrize("entry", ["format", "version"])
@pytest.mark.parametrize("kind", LOAD)
def test_missing_header_entry(kind: str, entry: str, copied: Callable[[str], Path], refuses: Refuses) -> None:
    name, load = LOAD[kind]
    file = copied(kind) / name
    content = json.loads(file.read_text(encoding="utf-8"))
    del content[entry]
    file.write_text(json.dumps(content), encoding="utf-8")
    refuses(lambda: load(file.parent))


@pytest.mark.parametrize("content", TEXTS)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_content(kind: str, name: str, content: str, copied: Callable[[str], Path], refuses: Refuses) -> None:
    file = copied(kind) / name
    file.write_bytes(TEXTS[content])
    assert str(file.parent) in refuses(lambda: LOAD[kind][1](file.parent))


@pytest.mark.parametrize("special", [special for special in SPECIAL if not special.startswith("link to nothing")])
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_special_file(kind: str, name: str, special: str, copied: Callable[[str], Path], refuses: Refuses) -> None:
    file = copied(kind) / name
    file.unlink(missing_ok=True)
    SPECIAL[special](file)
    if name == "recipe.toml" and special == "link to itself":  # as if removed, which people do before sharing a run
        assert not LOAD[kind][1](file.parent).recipe
        return
    assert str(file.parent) in refuses(lambda: LOAD[kind][1](file.parent))


@pytest.mark.parametrize("column", [[1.5], [None], [b"x"], [["x"]], [{"a": 1}], [True]], ids=str)
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names if name.endswith("parquet")]
)
def test_column(kind: str, name: str, column: list[Any], copied: Callable[[str], Path]) -> None:
    file = copied(kind) / name
    table = pl.read_parquet(file)
    for changed in table.columns:
        table.with_columns(pl.Series(changed, column * table.height)).write_parquet(file)
        try:
            _use(LOAD[kind][1](file.parent))
        except CrosslensError as error:
            assert str(file.parent) in str(error)  # noqa: PT017  (either of two outcomes is right)


@pytest.mark.parametrize(
    "words", ["show {}", "export {} --to csv -o {}/x.csv", "compare {} {}", "plot {} --write {}/x.svg"]
)
@pytest.mark.parametrize("value", JSON_VALUES, ids=lambda value: repr(value)[:12])
def test_commands_on_a_changed_run(words: str, value: Any, copied: Callable[[str], Path], call: Call) -> None:
    folder = copied("run")
    for entry in ("provenance", "name"):
        content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        (folder / "run.json").write_text(json.dumps(content | {entry: value}), encoding="utf-8")
        outcome = call(*(word.replace("{}", str(folder)) for word in words.split()))
        assert outcome.code == 0 or (outcome.code == 3 and str(folder) in outcome.err), outcome.err
        (folder / "x.csv").unlink(missing_ok=True)
        (folder / "x.svg").unlink(missing_ok=True)
