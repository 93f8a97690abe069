"""The script behind the page on trained models: what is missing, and what its tables say of finished models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crosslens.train.stored import model_folder  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    monkeypatch.setattr(model_folder, "card_text", lambda card: "")  # these models have no more than figures
    import training

    return training


def finish(work: Path, cell: Any, **test: float) -> None:
    """A finished model of this cell, with these figures."""
    folder = work / cell.folder
    folder.mkdir(parents=True)
    model_folder.write_model(folder, {"identity": cell.recipe.identity(), "test": test}, {"weight": torch.zeros(1)})


def test_a_model_counts_if_its_settings_are_those_of_the_cell(study: ModuleType, tmp_path: Path) -> None:
    first, second = study.cells_of(study.load_training_recipe(study.FIXED), range(2), 0.1)
    assert study.values(tmp_path, [first], "Rsum") is None
    finish(tmp_path, first, Rsum=100.0)
    assert study.values(tmp_path, [first], "Rsum") == [100.0]
    assert study.values(tmp_path, [first], "Nsum") is None, "a figure that nobody measured"
    assert study.values(tmp_path, [first, second], "Rsum") is None, "a seed is missing"
    other = replace(first, recipe=first.recipe.with_settings({"epochs": 3}))
    assert other.card(tmp_path) is None
    on_a_gpu = replace(first, recipe=first.recipe.with_settings({"device": "cuda"}))
    assert on_a_gpu.card(tmp_path) is not None


def test_what_is_missing_comes_seed_by_seed(study: ModuleType, tmp_path: Path) -> None:
    every = study.unfinished(tmp_path, ["margins"])
    assert len(every) == len({cell.folder for cell in every}) == (1 + len(study.MARGINS)) * 3 * 5
    assert [cell.recipe.settings.seed for cell in every] == sorted(cell.recipe.settings.seed for cell in every)
    finish(tmp_path, every[0], Rsum=1.0)
    assert [cell.folder for cell in study.unfinished(tmp_path, ["margins"])] == [cell.folder for cell in every[1:]]


def test_the_table_of_margins(study: ModuleType, tmp_path: Path) -> None:
    """Differences of 20, 30, 25, 35 and 40: mean 30, sd 7.9, t = 30 ÷ (7.9 ÷ √5) = 8.49 with 4 degrees, p = 0.0011."""
    cells = study.margin_cells()
    name = study.MARGINS[0]
    for seed, (fixed, adaptive) in enumerate(zip([60, 62, 61, 63, 64], [80, 92, 86, 98, 104], strict=True)):
        finish(tmp_path, cells[study.FIXED, 0.1][seed], Rsum=float(fixed))
        finish(tmp_path, cells[name, 0.1][seed], Rsum=float(adaptive))
    lines = study.margin_table(tmp_path).splitlines()
    assert "| 10% | `flickr8k-vse-triplet` | 62.0 ± 1.6 | – | – |  |  |" in lines
    assert f"| 10% | `{name}` | 92.0 ± 9.5 | – | – | +30.0 | 0.0011 |" in lines
    assert f"| 25% | `{name}` | – | – | – | – | – |" in lines


def test_tables_have_a_row_for_everything(study: ModuleType, tmp_path: Path) -> None:
    assert len(study.model_table(tmp_path).splitlines()) == 2 + len(study.MODELS)
    assert len(study.tau_table(tmp_path).splitlines()) == 2 + 3 * 3 * 2
    recipe = study.tau_recipe("soft", 5.0, False)
    assert recipe.losses == ({"kind": "sam", "sampling": "soft", "tau": 5.0, "weight": 5.0},)
    assert study.tau_recipe("soft", 5.0, True).losses[0]["kind"] == "triplet"
    random = study.tau_recipe("random", 3.0, True)
    assert random.identity() == study.load_training_recipe("flickr8k-vse-sam-random").identity()


def test_figures(study: ModuleType) -> None:
    assert study.figure([0.1, 0.2, 0.3]) == f"0.200 ± {np.std([0.1, 0.2, 0.3], ddof=1):.3f}"
    assert study.figure(None) == "–"


def test_the_page_is_written_from_finished_models_alone(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(study, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["training.py", "--work", str(tmp_path / "work"), "--part", "tau", "--write"])
    assert study.main() == 0
    text = page.read_text(encoding="utf-8")
    assert "| random | 3 | ✓ | – | – | – |" in text
    assert "missing: flickr8k-vse-sam-hard-tau10-alone/0.1/seed-4" in capsys.readouterr().err
    assert study.main() == 0, "a second time, into the page that is there"
    assert page.read_text(encoding="utf-8") == text
