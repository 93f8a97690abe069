"""The script behind the page on trained models: what is missing, and what its tables say of finished trainings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))
    import training

    return training


@pytest.fixture
def figures(study: ModuleType, tmp_path: Path) -> Any:
    return study.Figures(tmp_path / "figures.jsonl")


def finish(figures: Any, cell: Any, validation: float = 0.0, **test: float) -> None:
    """A finished training of this cell, with these figures."""
    card = {"steps": 1, "best_step": 1, "parameters": 1, "validation": {"Rsum": validation}, "test": test}
    figures.add(cell, card)


def test_a_training_counts_if_its_settings_are_those_of_the_cell(
    study: ModuleType, figures: Any, tmp_path: Path
) -> None:
    first, second = study.cells_of(study.load_training_recipe(study.FIXED), range(2), 0.1)
    assert figures.values([first], "Rsum") == []
    finish(figures, first, Rsum=100.123456789)
    assert figures.values([first, second], "Rsum") == [100.1235], "of the finished seed, to seven digits"
    assert figures.of(replace(first, recipe=first.recipe.with_settings({"epochs": 3}))) is None
    assert figures.of(replace(first, recipe=first.recipe.with_settings({"device": "cuda"}))) is not None
    finish(figures, second, Rsum=90.0)
    again = study.Figures(tmp_path / "figures.jsonl")
    assert again.values([first, second], "Rsum") == [100.1235, 90.0]


def test_what_is_missing_comes_seed_by_seed(study: ModuleType, figures: Any) -> None:
    every = study.unfinished(figures, ["margins"])
    rows = sum(len(names) for names in study.MARGINS.values())
    assert len(every) == len({cell.name for cell in every}) == 5 * rows + 3 * len(study.VARIANTS)
    assert [cell.seed for cell in every] == sorted(cell.seed for cell in every)
    finish(figures, every[0], Rsum=1.0)
    assert [cell.name for cell in study.unfinished(figures, ["margins"])] == [cell.name for cell in every[1:]]


def test_the_table_of_margins(study: ModuleType, figures: Any) -> None:
    """Differences of 20, 30, 25, 35 and 40: mean 30, sd 7.9, t = 30 ÷ (7.9 ÷ √5) = 8.49 with 4 degrees, p = 0.0011."""
    cells = study.margin_cells()
    name = study.ADAPTIVE[0]
    shares = dict.fromkeys(study.MARGIN_FIGURES[1:], 0.5)
    for seed, (fixed, adaptive) in enumerate(zip([60, 62, 61, 63, 64], [80, 92, 86, 98, 104], strict=True)):
        finish(figures, cells[study.FIXED, 0.1][seed], Rsum=float(fixed), **shares)
        finish(figures, cells[name, 0.1][seed], Rsum=float(adaptive), **dict.fromkeys(shares, 0.6 + seed / 100))
    lines = study.margin_table(figures).splitlines()
    assert "| 10% | `flickr8k-vse-triplet` | 5 | 62.0 ± 1.6 | " + " | ".join(["50.0 ± 0.0"] * 4) + " |" in lines
    row = next(line for line in lines if line.startswith(f"| 10% | `{name}` |"))
    assert row.startswith(f"| 10% | `{name}` | 5 | 92.0 ± 9.5 (+30.0, p 0.001) | 62.0 ± 1.6 (+12.0, p ")
    assert f"| 25% | `{name}` | 5 | – | – | – | – | – |" in lines


def test_the_search_is_ordered_by_validation(study: ModuleType, figures: Any) -> None:
    for label, validation, test in (("SigLIP", 95.0, 80.0), ("InfoNCE", 90.0, 99.0)):
        for seed, cell in enumerate(study.search_cells()[label]):
            finish(figures, cell, validation + seed, Rsum=test + seed)
    assert study.search_table(figures).splitlines()[2] == "| SigLIP | 95.5 ± 0.7 |", (
        "the best of validation, not of test"
    )


def test_the_confirmed_loss_is_the_best_of_the_search(study: ModuleType) -> None:
    kept = study.Figures(study.FIGURES)
    assert study.search_table(kept).splitlines()[2].startswith(f"| {study.BEST} |")
    phi, losses = study.SEARCHED[study.BEST]
    recipe = study.confirmed_cells()[study.BEST][0].recipe
    searched = study.search_cells()[study.BEST][0].recipe
    assert {**recipe.identity(), "losses": []} == {**searched.identity(), "losses": []}
    assert recipe.phi == phi
    assert [{"weight": 1.0, **entry} for entry in recipe.losses] == [{"weight": 1.0, **entry} for entry in losses]


def test_the_confirmation_compares_with_the_fixed_margin(study: ModuleType, figures: Any) -> None:
    for number, cells in enumerate(study.confirmed_cells().values()):
        for seed, cell in enumerate(cells):
            finish(
                figures, cell, **dict.fromkeys(study.MARGIN_FIGURES, 100.0 + seed + (seed % 2) * number - 5 * number)
            )
    rows = study.confirmation(figures).splitlines()[2:]
    assert len(rows) == 4
    assert rows[0].startswith("| triplet, margin 0.2 | 102.0 ± 1.6 |")
    assert "97.4 ± 1.7 (-4.6, p" in rows[1]


def test_the_margin_of_the_control_does_not_adapt(study: ModuleType) -> None:
    import torch

    from crosslens.train.losses.protocol import LOSSES

    entry = dict(study.confirmed_cells()["triplet + margin 0.84 against random negatives"][0].recipe.losses[1])
    settings = {key: value for key, value in entry.items() if key not in ("kind", "weight")}
    loss = LOSSES[entry["kind"]].value(**settings)
    phi = torch.tensor([[2.0, 0.3], [0.1, 2.9]])

    class Batch:
        scores, relevant = torch.tensor([[0.5, 0.2], [0.1, 0.9]]), torch.eye(2, dtype=torch.bool)
        generator = torch.Generator().manual_seed(0)

        @staticmethod
        def phi(rows: Any, columns: Any) -> Any:
            return phi[rows, columns]

    hinges = [0.84 - 0.5 + 0.2, 0.84 - 0.9 + 0.1, 0.84 - 0.5 + 0.1, 0.84 - 0.9 + 0.2]
    assert float(loss(Batch)) == pytest.approx(sum(hinge for hinge in hinges if hinge > 0), rel=1e-5)


def test_tables_have_a_row_for_everything(study: ModuleType, figures: Any) -> None:
    assert len(study.model_table(figures).splitlines()) == 2 + len(study.MODELS)
    assert len(study.tau_table(figures).splitlines()) == 2 + 3 * 3 * 2
    recipe = study.tau_recipe("soft", 5.0, False)
    assert recipe.losses == ({"kind": "sam", "sampling": "soft", "tau": 5.0, "weight": 1.0},)
    assert study.tau_recipe("soft", 5.0, True).losses[0]["kind"] == "triplet"
    random = study.tau_recipe("random", 3.0, True)
    assert random.identity() == study.load_training_recipe("flickr8k-vse-sam-random").identity()


def test_means(study: ModuleType) -> None:
    assert study.mean_text([0.1, 0.2, 0.3]) == f"20.0 ± {100 * np.std([0.1, 0.2, 0.3], ddof=1):.1f}"
    assert study.mean_text([5.0, 6.0]) == "5.5 ± 0.7"
    assert study.mean_text([7.0]) == "7.0"
    assert study.mean_text([]) == "–"


def test_the_page_has_the_figures_that_are_kept(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["training.py"])
    assert study.main() == 0, capsys.readouterr().out


def test_the_page_has_the_figures_of_one_to_many_heads(
    study: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import one_to_many

    monkeypatch.setattr("sys.argv", ["one_to_many.py"])
    assert one_to_many.main() == 0, capsys.readouterr().out
    figures = {
        f"{name} {level} {direction}/Hit@5": [0.5, 0.6, 0.7]
        for name in one_to_many.HEADS
        for level in ("easy", "medium", "hard")
        for direction in ("t2i", "i2t")
    }
    figures[f"{one_to_many.HEADS[1]} hard t2i/Hit@5"] = [0.6, 0.6, 0.6]
    rows = one_to_many.table(figures).splitlines()
    assert rows[2].count("60.0 ± 10.0 |") == 6
    assert "| 60.0 ± 0.0 (+0.0) |" in rows[3]
