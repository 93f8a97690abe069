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
    fixed = study.margin_cells()[study.FIXED, study.STUDIED]
    for number, cells in enumerate([fixed, *study.confirmed_cells().values()]):
        for seed, cell in enumerate(cells):
            finish(
                figures, cell, **dict.fromkeys(study.MARGIN_FIGURES, 100.0 + seed + (seed % 2) * number - 5 * number)
            )
    rows = study.confirmation(figures).splitlines()[2:]
    assert len(rows) == 2
    assert "97.4 ± 1.7 (-4.6, p" in rows[0]


def test_the_margin_of_the_control_does_not_adapt(study: ModuleType) -> None:
    import torch

    from crosslens.train import LOSSES

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


def test_sam_is_all_that_differs_on_the_papers_models(study: ModuleType) -> None:
    cells = study.table_2_cells()
    assert {model for model, _, _ in cells} == {"CVSE", "SGR", "SGR, InfoNCE", "VSRN", "VSRN, InfoNCE"}
    for (model, losses, fraction), repetitions in cells.items():
        assert [cell.seed for cell in repetitions] == [0, 1, 2]
        with_sam, without = (cell.recipe.identity() for cell in (repetitions[0], cells[model, "", fraction][0]))
        assert {**with_sam, "losses": []} == {**without, "losses": []}
        added = with_sam["losses"][len(without["losses"]) :]
        assert with_sam["losses"][: len(without["losses"])] == without["losses"]
        assert [entry["kind"] for entry in added] == (["sam"] if losses else [])
    assert all(
        model.startswith("VSRN") == ("captioning" in str(repetitions[0].recipe.losses))
        for (model, *_), repetitions in cells.items()
    )


def test_the_tables_of_five(study: ModuleType, figures: Any) -> None:
    """Rows as in the paper, a dash for what is missing, the difference from the same model without SAM."""
    cells = study.table_2_cells()
    shares = {**dict.fromkeys(study.R_AT_K, 0.25), **dict.fromkeys(study.N_AT_K, 0.5)}
    for seed in range(3):
        finish(figures, cells["CVSE", "", 0.1][seed], Rsum=100.0 + seed, **{"Nsum[spice]": 150.0}, **shares)
        finish(figures, cells["CVSE", " + SAM, τ 6, weight 5", 0.1][seed], Rsum=110.0 + 2 * seed, **shares)
    lines = study.table_2(figures).splitlines()
    assert len(lines) == 2 + 2 * 5 * 3
    parts = " | ".join(["25.0"] * 6), " | ".join(["50.0"] * 6)
    assert f"| 10% | CVSE | {parts[0]} | 101.0 ± 1.0 | {parts[1]} | 150.0 ± 0.0 | 138.7, 167.6 |" in lines
    row = next(line for line in lines if line.startswith("| 10% | CVSE + SAM, τ 6, weight 5 |"))
    assert "| 112.0 ± 2.0 (+11.0, p 0.003) |" in row, "differences 10, 11, 12: t = 11 √3 with 2 degrees"
    assert row.endswith("| – | 303.2, 253.6 |"), "Nsum was not measured"
    missing = " | ".join(["–"] * 14)
    assert f"| 25% | VSRN | {missing} | – |" in lines
    assert f"| 25% | SGR | {missing} | 140.6, 167.6 |" in lines
    soft, others = (study.PARTS[f"five-table-{number}"][1](figures).splitlines()[2:] for number in (4, 5))
    assert [line.split(" | ")[:3] for line in soft] == [
        [f"| {tau}", "SN", kept] for tau in (3, 5, 10) for kept in ("✓", "✗")
    ]
    assert [line.split(" | ")[1] for line in others] == ["RS"] * 6 + ["HN"] * 6
    assert len(study.sampling_table(figures).splitlines()) == 2 + 5


def test_a_random_order_has_that_rsum(study: ModuleType) -> None:
    """Of drawn ranks: an image's best of its five captions among 5,000, a caption's image among 1,000."""
    draws = np.random.default_rng(0)
    best = draws.random((100_000, study.CAPTIONS)).min(axis=1) * study.TEST_IMAGES * study.CAPTIONS
    image = draws.integers(study.TEST_IMAGES, size=100_000)
    drawn = sum(100 * (float(np.mean(best < k)) + float(np.mean(image < k))) for k in (1, 5, 10))
    assert study.chance_rsum() == pytest.approx(drawn, abs=0.2)
    assert f"A random order has Rsum {study.chance_rsum():.1f};" in study.PAGE.read_text(encoding="utf-8")


def test_the_sentences_of_the_page_hold_for_the_kept_figures(study: ModuleType) -> None:
    figures = study.Figures(study.FIGURES)
    cells, by_tau, sampled = study.table_2_cells(), study.cvse_cells(), study.sampling_cells()
    published, milder = " + SAM, τ 6, weight 5", " + SAM, τ 3, weight 1"

    def values(row: list[Any], metric: str = "Rsum") -> Any:
        measured = np.array(figures.values(row, metric))
        assert len(measured) == 3
        return measured

    def gain(model: str, losses: str, fraction: float, metric: str = "Rsum") -> Any:
        return values(cells[model, losses, fraction], metric) - values(cells[model, "", fraction], metric)

    chance = study.chance_rsum()
    for fraction in (0.1, 0.25):
        assert gain("CVSE", milder, fraction).min() > 0, "every seed"
        assert min(gain("CVSE", losses, fraction, "Nsum[spice]").min() for losses in (published, milder)) > 0
        assert values(cells["SGR", "", fraction]).max() < 2 * chance
        assert min(gain(model, published, fraction).min() for model in ("SGR", "VSRN")) > 50
        assert gain("VSRN, InfoNCE", milder, fraction).min() > 0
        sgr = values(cells["SGR, InfoNCE", "", fraction]).mean() - values(cells["SGR", published, fraction]).mean()
        vsrn = values(cells["VSRN", published, fraction]).mean() - values(cells["VSRN, InfoNCE", "", fraction]).mean()
        assert sgr > 5
        assert 0 < vsrn < 5
    assert gain("CVSE", published, 0.25).mean() < gain("CVSE", published, 0.25).std(ddof=1)
    assert gain("VSRN", milder, 0.1).mean() < 5
    assert gain("VSRN", milder, 0.25).max() < 0
    assert max(values(cells["SGR", milder, fraction]).mean() for fraction in (0.1, 0.25)) < 20
    for losses in (milder, published):
        assert abs(gain("SGR, InfoNCE", losses, 0.1).mean()) < 1
    assert gain("SGR, InfoNCE", milder, 0.25).min() > 0
    assert abs(gain("SGR, InfoNCE", published, 0.25).mean()) < 1
    cvse = values(cells["CVSE", "", 0.1])
    rows = {key[:2]: values(row).mean() for key, row in by_tau.items() if key[2:] == (True, 0.1)}
    for tau in (3.0, 5.0):
        assert rows["random", tau] > max(rows["soft", tau], rows["hard", tau]) + 5
    assert all(abs(rows[sampling, 10.0] - cvse.mean()) < cvse.std(ddof=1) for sampling in study.SAMPLINGS)
    more = {
        key[:2]: values(row).mean() - values(cells["CVSE", "", 0.25]).mean()
        for key, row in by_tau.items()
        if key[2:] == (True, 0.25)
    }
    assert [key for key, above in more.items() if above > 5] == [("random", 5.0)]
    for sampling in ("hard", "soft"):
        assert max(values(sampled[model, sampling]).mean() for model in ("SGR", "VSRN")) < 20
        assert values(sampled["SGR, InfoNCE", sampling]).mean() < values(sampled["SGR, InfoNCE", ""]).mean() - 5
        assert abs(values(sampled["VSRN, InfoNCE", sampling]).mean() - values(sampled["VSRN, InfoNCE", ""]).mean()) < 2


def test_without_the_triplet_loss_cvse_keeps_its_levels(study: ModuleType) -> None:
    for (sampling, tau, kept, _), repetitions in study.cvse_cells().items():
        kinds = [entry["kind"] for entry in repetitions[0].recipe.losses]
        assert kinds == (["triplet"] if kept else []) + ["consensus", "sam"]
        assert repetitions[0].recipe.losses[-1] == {"kind": "sam", "sampling": sampling, "tau": tau, "weight": 5.0}


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
    assert "| 60.0 ± 0.0 (0.0) |" in rows[3]
