"""``crosslens leaderboard``."""

from __future__ import annotations

from pathlib import Path

from crosslens.cli import main
from crosslens.values import Run

from .conftest import Call, flags


def test_two_models_on_a_dataset(runs: tuple[Path, Path], call: Call) -> None:
    outcome = call("leaderboard", *runs, "--permutations", "200")
    assert outcome.code == 0
    assert "the first metric of each direction" in outcome.err
    assert outcome.out.splitlines()[1].split() == ["model", "i2t/Hit@1", "t2i/Hit@1", "(primary)"]
    by_i2t = call("leaderboard", *runs, "--primary", "i2t/Hit@1", "--permutations", "200", "--json").json
    assert by_i2t["primary"] == "i2t/Hit@1"
    content = call("leaderboard", *runs, "--metrics", "t2i/MRR", "--permutations", "200", "--json").json
    means = {cell["model"]: cell["mean"] for cell in content["cells"]}
    assert means == {folder.name: Run.load(folder)["t2i/MRR"].mean for folder in runs}
    assert content["tests"] == 1


def test_another_relevance_or_fold_is_another_column(
    study: Path, runs: tuple[Path, Path], tmp_path: Path, call: Call
) -> None:
    words = [str(word) for word in ("evaluate", *flags(study), "--folds", "2", "-o", tmp_path / "a")]
    assert main(words) == 0
    content = call(
        "leaderboard", *runs, tmp_path / "a", "--metrics", "t2i/Hit@1", "--permutations", "50", "--json"
    ).json
    assert content["models"] == ["a", "b"]
    assert len(content["datasets"]) == 2
    assert content["datasets"][1].endswith("(2 folds)")


def test_latex_and_a_page(runs: tuple[Path, Path], tmp_path: Path, call: Call) -> None:
    page, table = tmp_path / "board.html", tmp_path / "board.tex"
    outcome = call("leaderboard", *runs, "--write", page, "--write", table, "--permutations", "50", "--json")
    assert outcome.json["files"] == [str(page), str(table)]
    assert table.read_text(encoding="utf-8").startswith("% needs \\usepackage{booktabs}")
    assert "<h1>Leaderboard</h1>" in page.read_text(encoding="utf-8")
    assert call("leaderboard", *runs, "--write", page).code == 5
    assert call("leaderboard", *runs, "--write", page, "--overwrite", "--permutations", "50").code == 0


def test_mistakes(runs: tuple[Path, Path], tmp_path: Path, call: Call) -> None:
    outcome = call("leaderboard", *runs, "--metrics", "t2i/Hti@1")
    assert outcome.code == 2
    assert call("leaderboard", tmp_path).code == 3
