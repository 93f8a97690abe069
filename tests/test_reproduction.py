"""docs/reproduction.md: every table and figure of the papers has a row, and every figure comes from a measurement."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from crosslens.core import CrosslensError
from crosslens.train import load_training_recipe, recipe_names
from tests.test_docs import fault

ROOT = Path(__file__).resolve().parents[1]
CAPTION = re.compile(r"^(?:\*\*|<\|[^>]*\|>)?(Table|Figure) (\d+)[.:]", re.MULTILINE)
"""How the papers' texts begin a caption; two of them have a mark before some."""


def measurement_names() -> list[str]:
    """All that the rows name; the measurements themselves are imported with their test."""
    rows = (ROOT / "reproduce" / "papers").glob("*.toml")
    measurements = (
        row.get("measurement", ()) for file in rows for row in tomllib.loads(file.read_text()).get("row", ())
    )
    return sorted({name for names in measurements for name in ((names,) if isinstance(names, str) else names)})


GOLDEN = """\
| | what it shows | command | printed | ours | why they differ, or what is missing |
|---|---|---|---|---|---|
| P Table 1 | a thing | `crosslens show a \\| sort`<br>reads `a` (there) | 1.0 | 1.1 (`--only first`); not measured \
(second: needs photos) | rounding |
| P Table 2 | another | – | 2.0 | – | needs the weights |
| P Figure 1 | a drawing | – | no figures | – | nothing to compute: see there |"""


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "reproduce"))


@pytest.fixture
def reproduction() -> ModuleType:
    import reproduction

    return reproduction


@pytest.fixture
def workplace(reproduction: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Three small measurements instead of the real ones, and folders of their own."""
    import measurements

    calls: list[str] = []

    def counted(name: str, figures: dict[str, str]) -> Any:
        def compute(data: Path) -> dict[str, str]:
            calls.append(name)
            if name == "broken":
                raise CrosslensError("no such thing")
            return figures

        return measurements.Measurement(name, ("photos",) if name == "starved" else (), compute)

    fakes = {name: counted(name, {"BRIT Table 1": "0.75"}) for name in ("granularity", "broken", "starved")}
    monkeypatch.setattr(measurements, "MEASUREMENTS", fakes)
    for name, value in (("PAGE", "page.md"), ("RESULTS", "results"), ("CACHES", "caches")):
        monkeypatch.setattr(reproduction, name, tmp_path / value)
    monkeypatch.setattr(reproduction, "apart", reproduction.measure)  # a process of its own would measure in earnest
    monkeypatch.setenv("CROSSLENS_DATA", str(tmp_path / "data"))
    return {"calls": calls, "page": tmp_path / "page.md", "results": tmp_path / "results"}


# The rows


def test_rows_are_complete(reproduction: ModuleType) -> None:
    import measurements

    used = set()
    for paper in reproduction.papers():
        items = [row.item for row in paper.rows]
        assert len(items) == len(set(items)), paper.name
        for row in paper.rows:
            assert all(text.strip() for text in (row.shows, row.printed, row.why)), row.key
            assert row.status != "measured" or (row.measurements and row.command), row.key
            used |= set(row.measurements)
    assert used == set(measurements.MEASUREMENTS), "a measurement without a row, or a row without its measurement"


def test_every_caption_of_the_papers_has_a_row(reproduction: ModuleType, shared_data: Path) -> None:
    folder = shared_data.parent / "papers"
    if not folder.is_dir():
        pytest.skip("the papers' texts are not here")
    for paper in reproduction.papers():
        captions = {f"{kind} {number}" for kind, number in CAPTION.findall((folder / paper.text).read_text("utf-8"))}
        assert len(captions) >= 6, paper.text
        assert captions <= {row.item for row in paper.rows}, paper.name


def test_rows_are_numbered_without_gaps(reproduction: ModuleType) -> None:
    """Also those whose captions the texts lack."""
    counts = {"FIVE": (5, 3), "BRIT": (5, 1), "EXPL": (13, 10), "RECOS": (3, 7), "IMP": (11, 25)}
    for paper in reproduction.papers():
        tables, figures = counts[paper.name]
        expected = [f"Table {n + 1}" for n in range(tables)] + [f"Figure {n + 1}" for n in range(figures)]
        assert [row.item for row in paper.rows] == expected


NUMBER = re.compile(r"\d+(?:\.\d+)?")
FAR = {"BRIT Figure 1": {13}, "EXPL Figure 9": {8.47}, "EXPL Figure 10": {82.52, 14.56, 2.91}, "IMP Figure 23": {30}}
"""What the texts say, but not near the captions of these figures: in words, in another section."""


def numbers_near(text: str, item: str) -> set[float]:
    """All numbers within some thousand characters of where a paper's text names a table or a figure."""
    text = text.replace(",", "")
    places = [match.start() for match in re.finditer(item.replace(" ", r"\s*\(?") + r"\b", text)]
    return {float(word) for at in places for word in NUMBER.findall(text[max(0, at - 4500) : at + 4500])}


def test_printed_figures_are_those_of_the_papers(reproduction: ModuleType, shared_data: Path) -> None:
    """On the page, and beside the recipes: every number stands near the table or figure that it is said to be of."""
    folder = shared_data.parent / "papers"
    if not folder.is_dir():
        pytest.skip("the papers' texts are not here")
    texts = {paper.name: (folder / paper.text).read_text("utf-8") for paper in reproduction.papers()}
    printed = [
        (row.key, float(word))
        for paper in reproduction.papers()
        for row in paper.rows
        for word in NUMBER.findall(row.printed.replace(",", ""))
    ]
    assert len(printed) > 200
    for name in recipe_names():
        for published in load_training_recipe(name).published:
            printed += [(published.table.split(",")[0], figure) for figure in published.figures.values()]
    assert len(printed) > 450
    wrong = [
        (key, number)
        for key, number in printed
        if number not in numbers_near(texts[key.split()[0]], key.split(" ", 1)[1]) | FAR.get(key, set())
    ]
    assert not wrong


def test_commands_exist(reproduction: ModuleType) -> None:
    rows = [row for paper in reproduction.papers() for row in paper.rows if row.command]
    assert len(rows) > 50
    commands = [(row.key, command) for row in rows for command in row.command.split(" && ")]
    assert not [f"{key}: {wrong}" for key, command in commands if (wrong := fault(command))]


def test_figures_of_one_build_are_beside_its_command(reproduction: ModuleType) -> None:
    """Other candidates, or descriptions checked against another gallery, give other counts."""
    rows = [row for paper in reproduction.papers() for row in paper.rows if "recos-build" in row.measurements]
    assert len(rows) == 3
    (command,) = {row.command for row in rows}
    assert "--check-gallery selected --grammar rules" in command


def test_what_several_rows_write_is_made_by_the_first(reproduction: ModuleType) -> None:
    rows = tuple(
        reproduction.Row("P", f"Table {number}", "a", "1", "needed", "b", "crosslens synth -o scenes")
        for number in (1, 2)
    )
    made_by = reproduction.makers([reproduction.Paper("P", "A paper", "p.txt", rows)])
    assert made_by["scenes"] == "[P Table 1](#p)"


def test_a_status_must_be_known(reproduction: ModuleType) -> None:
    row = {"item": "Table 1", "shows": "a", "printed": "b", "status": "done", "why": "c"}
    with pytest.raises(CrosslensError, match="done"):
        reproduction.read_row("BRIT", row)


# The page


def test_page_shows_what_was_measured(reproduction: ModuleType) -> None:
    rows = (
        reproduction.Row(
            "P", "Table 1", "a thing", "1.0", "measured", "rounding", "crosslens show a | sort", ("first", "second")
        ),
        reproduction.Row("P", "Table 2", "another", "2.0", "needed", "the weights"),
        reproduction.Row("P", "Figure 1", "a drawing", "no figures", "drawing", "see there"),
    )
    paper = reproduction.Paper("P", "A paper", "p.txt", rows)
    outcomes = {
        "first": reproduction.Outcome({"P Table 1": "1.1"}),
        "second": reproduction.Outcome({}, "needs photos"),
    }
    assert reproduction.paper_table(paper, outcomes, {"a": "there", "b": "elsewhere"}) == GOLDEN
    page = reproduction.page([paper], outcomes)
    assert "| P | 3 | 1 | 1 | 0 | 1 |\n| all | 3 | 1 | 1 | 0 | 1 |" in page


def test_committed_page_has_the_rows_and_figures_as_they_are_kept(reproduction: ModuleType, tmp_path: Path) -> None:
    """Whether they are of today's code is another test's matter."""
    results = reproduction.Results(reproduction.RESULTS, tmp_path / "no data")
    outcomes = {
        name: reproduction.outcome_of(kept) for name in reproduction.known(()) if (kept := results.stored(name))
    }
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == reproduction.page(reproduction.papers(), outcomes), "run make reproduce ARGS=--page"
    measured = [row for paper in reproduction.papers() for row in paper.rows if row.status == "measured"]
    assert len(measured) > 25
    without = [row.key for row in measured if "not measured" in reproduction.ours(row, outcomes)]
    assert not without, "run make reproduce"


def test_figures_are_of_todays_code_and_data(reproduction: ModuleType) -> None:
    """A measurement calls functions that have changed since, or reads data that have: its figures may be others now."""
    data = Path(os.environ.get("CROSSLENS_DATA", ROOT.parent / "shared" / "data"))
    results = reproduction.Results(reproduction.RESULTS, data)
    stale = {name: parts for name in reproduction.known(()) if (parts := results.stale(name))}
    assert not stale, "measure these again: make reproduce"


def test_page_and_command_are_documented() -> None:
    assert "docs/reproduction.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(reproduction.md)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "make reproduce" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^reproduce: .*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


# A run


def test_run_writes_the_page_and_says_what_is_missing(
    reproduction: ModuleType, workplace: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduction.main([]) == 1
    printed = capsys.readouterr().out
    assert "broken: no figures: failed: no such thing" in printed
    assert "starved: no figures: needs photos" in printed
    assert workplace["calls"] == ["granularity", "broken"]
    assert "| 0.75 (`--only granularity`) |" in workplace["page"].read_text(encoding="utf-8")
    assert [file.name for file in workplace["results"].iterdir()] == ["granularity.json"], "nothing half written"


def test_second_run_resumes(reproduction: ModuleType, workplace: dict[str, Any]) -> None:
    assert reproduction.main(["--only", "granularity"]) == 0
    reproduction.main([])
    assert workplace["calls"] == ["granularity", "broken"]
    reproduction.main(["--only", "granularity", "--fresh"])
    assert workplace["calls"] == ["granularity", "broken", "granularity"]


def test_result_of_other_code_or_data_is_measured_again(reproduction: ModuleType, workplace: dict[str, Any]) -> None:
    reproduction.main(["--only", "granularity"])
    file = workplace["results"] / "granularity.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(
        json.dumps({**stored, "code": {"crosslens.gone": "lost 0123456789abcdef"}, "figures": {"BRIT Table 1": "99"}}),
        "utf-8",
    )
    reproduction.main(["--page"])
    assert "99" not in [cell.strip() for cell in workplace["page"].read_text(encoding="utf-8").split("|")]
    reproduction.main(["--only", "granularity"])
    assert workplace["calls"] == ["granularity", "granularity"]
    assert reproduction.main(["--check"]) == 0


def test_the_quickest_is_measured_first(
    reproduction: ModuleType, workplace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was never measured comes last; where it took long before, it is kept with figures of other code, too."""
    import measurements

    for name, seconds in (("slow", 90), ("quick", 3)):
        compute = lambda data, name=name: workplace["calls"].append(name) or {}  # noqa: E731
        monkeypatch.setitem(measurements.MEASUREMENTS, name, measurements.Measurement(name, (), compute))
        workplace["results"].mkdir(exist_ok=True)
        kept = {"figures": {}, "seconds": seconds, "data": "", "code": {"crosslens.gone": "lost 0123456789abcdef"}}
        (workplace["results"] / f"{name}.json").write_text(json.dumps(kept), "utf-8")
    reproduction.main([])
    assert workplace["calls"] == ["quick", "slow", "granularity", "broken"]


def test_data_that_a_measurement_reads_make_it_stale(
    reproduction: ModuleType, workplace: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    data = workplace["page"].parent / "data"
    data.mkdir()
    (data / "photos").write_text("a dog", encoding="utf-8")
    reproduction.main(["--only", "starved"])
    (data / "captions").write_text("no part of it", encoding="utf-8")
    assert reproduction.main(["--check"]) == 0
    (data / "photos").write_text("two dogs", encoding="utf-8")
    assert reproduction.main(["--check"]) == 1
    assert "starved (0 s): made by other data" in capsys.readouterr().out
    (data / "photos").unlink()  # without its data nothing could be measured again, and nothing has changed
    assert reproduction.main(["--check"]) == 0
    assert workplace["calls"] == ["starved"]


def test_unknown_measurement_is_refused(
    reproduction: ModuleType, workplace: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CrosslensError, match="granularty"):
        reproduction.known(["granularty"])
    with pytest.raises(SystemExit):
        reproduction.main(["--only", "granularty"])
    assert "granularty" in capsys.readouterr().err
    assert not workplace["page"].exists()


# Figures, measured again

QUICK = ("worked-example", "training-figures")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in measurement_names()]
)
def test_measured_again_the_page_has_the_same_figures(name: str) -> None:
    import measurements

    data = Path(os.environ.get("CROSSLENS_DATA", ROOT.parent / "shared" / "data"))
    if lacking := measurements.MEASUREMENTS[name].lacks(data):
        pytest.skip(f"not here: {', '.join(lacking)}")
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    figures = measurements.MEASUREMENTS[name].compute(data)
    assert figures
    for key, text in figures.items():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {key} | ")]
        assert text.replace("|", "\\|") in line, key


def test_a_cause_that_most_failures_leave_undecided_is_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As `crosslens explain` prints it: its share would be that of the few decided ones."""
    import measurements

    causes = {"cause": ["object", "colour", "x"], "asked": [10, 3, None], "open": [5, 2, None]}
    metrics = ["CA", "NonCommonSimilarity", "CE", "SD[binary]", "matched_synsets"]
    overview = SimpleNamespace(
        queries=pl.DataFrame({"query": range(4)}), failures=pl.DataFrame({"query": range(2)}),
        metrics=pl.DataFrame({"metric": metrics, "scope": "all"}),
        causes=pl.DataFrame({**causes, "main_share": [0.25, 0.1, 0.65]}),
        cause_numbers=pl.DataFrame({"causes": [0, 1], "of_caused": [None, 1.0], "share": [0.5, 0.5]}),
    )  # fmt: skip
    for module, name in (("explain_coco", "dataset_of"), ("explain_coco", "encoded")):
        monkeypatch.setattr(f"measurements.{module}.{name}", lambda *_: None)
    monkeypatch.setattr("measurements.encoders", lambda: {measurements.SMALL: None})
    monkeypatch.setattr("measurements.explain_coco.explained", lambda *_: overview)
    monkeypatch.setattr("measurements.concept_figure", lambda *_: "")
    figure = measurements.coco_failures(tmp_path)["EXPL Table 2"]
    assert figure.endswith("main cause: object 25.0 %, colour open, x 65.0 %")


def test_averages_of_refined_captions_leave_a_model_out(shared_data: Path) -> None:
    """12.63 % and 10.05 % are in the paper's text; its table, typed in, gives them without X-VLM alone."""
    import brit

    file = shared_data.parent / "papers" / "brittleness.txt"
    if file.is_file():
        table = file.read_text("utf-8").split("**Table 2")[1].split("On average")[0]
        numbers = [float(number) for number in re.findall(r"\b\d+\.\d\d\b", table.split("\n\n")[1])]
        assert numbers == [value for rows in brit.TABLE_2.values() for row in rows for value in row]
    printed = (12.63, 10.05)
    matching = [model for model in ("", *brit.TABLE_2)
                if brit.average_gains(model) == pytest.approx(printed, abs=0.005)]  # fmt: skip
    assert matching == ["X-VLM"]


@pytest.mark.slow
def test_published_lists(shared_data: Path) -> None:
    """As the paper prints them, of Flickr30k."""
    import measurements

    figures = measurements.align_lists(shared_data)
    assert "35.56 / 58.78 / 67.64, rsum 161.98" in figures["BRIT Table 3"]
    assert "shuffle_within_trigrams 11.68 " in figures["BRIT Table 4"]
