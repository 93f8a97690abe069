"""Verdicts: against hand-made figures, and for random ones against a reference that spells the rule out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import crosslens as cl
from crosslens.audits import (
    CheckedModel,
    RequirementCheck,
    RequirementResult,
    Sources,
    check_requirements,
    github_annotations,
    parse_requirement,
    read_checked,
    read_requirements,
)
from crosslens.audits.requirements import Measured, RequiredFigure, _decided
from crosslens.core import InputError, UsageError
from crosslens.pipeline import Robustness, group_metrics
from crosslens.statistics import paired_permutation
from crosslens.values import MetricValues, Run

QUERIES = 80
CATEGORIES = np.array(["cat"] * 40 + ["dog"] * 30 + ["owl"] * 6 + [""] * 4)


def run(name: str, share: float, low: float = 0.5, high: float = 0.7) -> Run:
    ids, clusters = tuple(f"q{row}" for row in range(QUERIES)), np.arange(QUERIES)
    right = (np.random.default_rng(0).random(QUERIES) < share).astype(float)
    right[70:76] = [1, 1, 1, 1, 0, 1]  # owls: few, and nearly all right
    columns = {"t2i": pl.DataFrame({"category": CATEGORIES})}
    return Run(
        name,
        {
            "t2i/Hit@1": MetricValues("t2i/Hit@1", ids, right, clusters, float(right.mean()), low, high),
            "i2t/Hit@1": MetricValues("i2t/Hit@1", ids, right * 0 + 0.25, clusters, 0.25, 0.2, 0.3),
            "t2i/MedR": MetricValues("t2i/MedR", ids, 5 - 4 * right, clusters, 1.0, 1.0, 2.0, "median"),
            "t2i/NCS[x]@5": MetricValues(
                "t2i/NCS[x]@5", ids, np.full(QUERIES, np.nan), clusters, math.nan, math.nan, math.nan
            ),
        },
        columns=columns,
    )


def study(seeds: int = 1) -> Robustness:
    rows = [
        {"model": model, "perturbation": name, "seed": seed, "metric": metric, "drop": drop + 0.01 * seed,
         "low": drop - 0.02, "high": drop + 0.02 + 0.01 * seed}
        for model, extra in (("a", 0.0), ("b", 0.5))
        for name, drop in (("char_swap", 0.04 + extra), ("blur@3", 0.3))
        for metric in ("t2i/Hit@1", "i2t/Hit@1", "Rsum")
        for seed in range(seeds)
    ]  # fmt: skip
    return Robustness(("a", "b"), ("char_swap", "blur@3"), "Rsum", "t2i", drops=pl.DataFrame(rows))


def groups(of: Run, column: str, metric: str) -> Any:
    return group_metrics(of, column, metric).values


AUDIT = '{"format": "crosslens/audit", "version": 1}'
MODEL = CheckedModel("a", run("a", 0.6), study(), "a")


def check(*texts: str, model: CheckedModel = MODEL, confident: bool = False, **sources: Any) -> RequirementCheck:
    return check_requirements([model], texts, Sources(groups, **sources), confident=confident)


def only(text: str, **options: Any) -> RequirementResult:
    (result,) = check(text, **options).results
    return result


def test_a_metric_in_its_unit() -> None:
    mean = MODEL.run["t2i/Hit@1"].mean
    result = only(f"t2i/Hit@1 >= {mean}")
    assert result.met
    assert (result.value, result.low, result.high, result.bound) == (mean, 0.5, 0.7, mean)
    assert not only(f"t2i/Hit@1 > {mean}").met
    assert only(f"t2i/R@1 >= {100 * mean - 1}%").met
    assert only("t2i/MedR <= 1").met


def test_a_metric_without_a_direction_is_one_requirement_per_direction() -> None:
    results = check("Hit@1 >= 0.3").results
    assert [(result.measure, result.met) for result in results] == [("t2i/Hit@1", True), ("i2t/Hit@1", False)]
    assert results[1].reason == "25.0 is below 30.0"


def test_a_drop_is_in_points() -> None:
    result = only("drop(char_swap, t2i/Hit@1) <= 4")
    assert result.met, "0.04 is 4 points, whatever the last bits say"
    assert result.bound == pytest.approx(0.04)
    assert not only("drop(char_swap, t2i/Hit@1) <= 3.9").met
    assert only("drop(char_swap, t2i/Hit@1) <= 4%").met
    headline = only("drop(char_swap) <= 5")
    assert (headline.metric, headline.bound) == ("Rsum", 5)
    assert [result.metric for result in check("drop(char_swap, Hit@1) <= 5").results] == ["t2i/Hit@1", "i2t/Hit@1"]


def test_a_drop_is_that_of_the_worst_seed() -> None:
    model = CheckedModel("a", run("a", 0.6), study(seeds=3), "a")
    result = only("drop(char_swap, t2i/Hit@1) <= 5", model=model)
    assert (result.part, result.met) == ("seed 2", False)
    assert result.value == pytest.approx(0.06)


def test_groups() -> None:
    values = MODEL.run["t2i/Hit@1"].values
    dogs = values[CATEGORIES == "dog"].mean()
    result = only("group(category=dog, t2i/Hit@1) >= 0.1")
    assert result.value == pytest.approx(dogs)
    means = {name: values[name == CATEGORIES].mean() for name in ("cat", "dog", "owl")}
    worst = only("worst(category, t2i/Hit@1) >= 0.1")
    assert worst.value == pytest.approx(min(means.values()))
    assert worst.part == min(means, key=lambda name: means[name]), "queries without a category are no group"
    lower_is_better = only("worst(category, t2i/MedR) <= 9")
    assert lower_is_better.value == max(
        np.median(MODEL.run["t2i/MedR"].values[name == CATEGORIES]) for name in ("cat", "dog", "owl")
    )


def test_confidence_in_the_worst_group_is_confidence_in_every_group() -> None:
    worst = only("worst(category, t2i/Hit@1) >= 30%", confident=True)
    lows = {name: values.low for name, values in groups(MODEL.run, "category", "t2i/Hit@1")["t2i/Hit@1"].items()}
    lows.pop("(none)")
    assert worst.low == min(lows.values())
    assert worst.part == min(lows, key=lambda name: lows[name])
    large = only("worst(category, t2i/Hit@1) >= 30%", confident=True, smallest_group=10)
    assert large.part != "owl"
    with pytest.raises(UsageError, match="character 7: no group of category has 100 queries or more"):
        check("worst(category, t2i/Hit@1) >= 30%", smallest_group=100)
    cats = groups(MODEL.run, "category", "t2i/Hit@1")["t2i/Hit@1"]["cat"]
    assert only("worst(category, t2i/Hit@1) >= 30%", smallest_group=40).value == cats.mean, "just so many are enough"


def test_a_gap_is_this_run_minus_the_other(tmp_path: Path) -> None:
    old = run("old", 0.3)
    old.save(tmp_path / "old")
    result = only("gap(t2i/Hit@1) >= 5", baseline=tmp_path / "old")
    ours, theirs = MODEL.run["t2i/Hit@1"], old["t2i/Hit@1"]
    assert result.value == pytest.approx(ours.mean - theirs.mean)
    assert result.bound == 0.05
    test = paired_permutation(ours.values, theirs.values, ours.clusters, permutations=10, bounds=(0, 1))
    assert (result.low, result.high) == test.interval, "the interval of the paired difference"
    gap = only(f"gap(t2i/Hit@1, {tmp_path}/old) >= 5")
    assert (gap.value, gap.met) == (result.value, True)
    with pytest.raises(UsageError, match="character 5: a gap requires a run to compare with"):
        check("gap(t2i/Hit@1) >= 5")


@pytest.mark.parametrize(
    ("text", "met", "reason"),
    [
        ("t2i/Hit@1 >= 50%", True, "the whole interval >= 50.0"),
        ("t2i/Hit@1 > 50%", False, "the interval begins at 50.0, not above 50.0"),
        ("t2i/Hit@1 >= 0.501", False, "the interval begins at 50.0, below 50.1"),
        ("t2i/Hit@1 <= 0.7", True, "the whole interval <= 70.0"),
        ("t2i/Hit@1 <= 0.69", False, "the interval ends at 70.0, above 69.0"),
        ("t2i/MedR <= 1", False, "the interval ends at 2, above 1"),
        ("drop(char_swap, t2i/Hit@1) <= 5", False, "the interval ends at +6.0, above +5.0"),
    ],
)
def test_confident(text: str, met: bool, reason: str) -> None:
    result = only(text, confident=True)
    assert (result.met, result.reason) == (met, reason)


def test_without_an_interval_nothing_is_certain() -> None:
    bare = CheckedModel("bare", run("bare", 0.6, math.nan, math.nan))
    assert only("t2i/Hit@1 >= 0.1", model=bare).met
    result = only("t2i/Hit@1 >= 0.1", model=bare, confident=True)
    assert not result.met
    assert "no interval" in result.reason


def test_figures_that_look_equal_are_shown_with_more_decimals() -> None:
    mean = MODEL.run["t2i/Hit@1"].mean
    assert only(f"t2i/Hit@1 >= {mean + 1e-6:.9f}").reason == f"{100 * mean:.4f} is below {100 * mean + 1e-4:.4f}"


figures = st.tuples(st.integers(-20, 20), st.integers(0, 5), st.integers(0, 5)).map(
    lambda t: RequiredFigure(t[0] / 10, (t[0] - t[1]) / 10, (t[0] + t[2]) / 10)
)


@given(
    st.lists(figures, min_size=1, max_size=5), st.sampled_from([">=", "<=", ">", "<"]), st.integers(-25, 25),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_the_verdict_over_several_figures(
    parts: list[RequiredFigure], comparison: str, bound: int, confident: bool, higher: bool
) -> None:
    """Slowly: where the bound is on the bad side, all figures must keep it; elsewhere the worst one alone decides."""
    measured = Measured("x", "t2i/MedR", tuple(parts), higher)
    requirement = parse_requirement(f"x {comparison} {bound / 10}")
    result = _decided(requirement, MODEL, measured, confident=confident)

    def keeps(number: float) -> bool:
        return {">=": number >= bound / 10, "<=": number <= bound / 10, ">": number > bound / 10,
                "<": number < bound / 10}[comparison]  # fmt: skip

    def fulfilled(figure: RequiredFigure) -> bool:
        return all(map(keeps, (figure.value, figure.low, figure.high) if confident else (figure.value,)))

    if (comparison in (">=", ">")) == higher:
        assert result.met == all(map(fulfilled, parts))
    else:
        worst = (min if higher else max)(figure.value for figure in parts)
        assert result.met in {fulfilled(figure) for figure in parts if figure.value == worst}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t2i/Hti@1 >= 0.6", "character 1: unknown metric in 'a' 't2i/Hti@1'"),
        ("t2i/NCS[x]@5 >= 0.6", "character 1: t2i/NCS[x]@5 of 'a' has no value"),
        ("t2i/Hit@1 >= 60", "character 14: t2i/Hit@1 is a share from 0 to 1, and the bound is 60"),
        ("t2i/MedR <= 5%", "character 13: t2i/MedR is no share, so its bound has no percent"),
        ("drop(chr_swap) <= 5", "character 6: unknown perturbation in this study 'chr_swap'"),
        ("drop(char_swap, t2i/MRR) <= 5", "character 17: unknown metric in this study 't2i/MRR'"),
        ("group(colour=red, t2i/Hit@1) > 0", "character 7: unknown column 'colour'"),
        ("group(category=cow, t2i/Hit@1) > 0", "character 16: unknown value of category 'cow'"),
        ("worst(category, i2t/Hit@1) > 0", "character 7: i2t/Hit@1 has no values by category"),
    ],
)
def test_mistakes_say_where_they_are(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check("t2i/Hit@1 >= 0.99", text)
    assert message in caught.value.problem


def test_a_drop_without_a_study() -> None:
    with pytest.raises(UsageError, match="a drop requires a robustness study of 'a'"):
        check("drop(char_swap) <= 5", model=CheckedModel("a", MODEL.run))
    with pytest.raises(UsageError, match="no requirements"):
        check()


def test_requirements_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text('require = ["t2i/Hit@1 >= 0.6", "drop(char_swap) <= 5"]\n', encoding="utf-8")
    assert [requirement.kind for requirement in read_requirements(file)] == ["metric", "drop"]
    for content, message in (
        (
            'require = ["t2i/Hit@1 >="]',
            "requirement 1: the requirement 't2i/Hit@1 >=', character 13: expected a number",
        ),
        ("require = []", "require is not a list of texts"),
        ("require = [3]", "line 1: require is not a list of texts"),
        ('requires = ["x > 1"]', "line 1: unknown key 'requires'"),
        ("require = [", "line 1: not valid TOML"),
    ):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read_requirements(file)
        assert message in str(caught.value)
        assert str(file) in str(caught.value)


def test_folders(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    for name in ("a", "b"):
        run(name, 0.5).save(audit / "runs" / name)
    (audit / "header.json").write_text(AUDIT, encoding="utf-8")
    assert [model.name for model in read_checked(audit)] == ["a", "b"]
    assert [model.name for model in read_checked(audit / "runs" / "b")] == ["b"]
    with pytest.raises(InputError, match="no such folder"):
        read_checked(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no results here"):
        read_checked(tmp_path)
    cl.Dataset.of({"a": ["x"]}).save(tmp_path / "data")
    with pytest.raises(InputError, match="contains crosslens/dataset"):
        read_checked(tmp_path / "data")
    with pytest.raises(UsageError, match="is for a run folder"):
        read_checked(audit, robustness=tmp_path)


def test_a_study_and_its_models(tmp_path: Path) -> None:
    from tests.pipeline.robustness_study.letters import QUICK
    from tests.pipeline.robustness_study.test_list_study import random_lists, relevant

    lists = {name: random_lists(images=20, seed=n) for n, name in enumerate(("none", "char_swap"))}
    cl.robustness_from_runs(lists, relevant(lists["none"]), name="m", output=tmp_path / "rob", **QUICK)
    (model,) = read_checked(tmp_path / "rob")
    assert (model.name, model.study_model) == ("m", "m")
    assert check("drop(char_swap) <= 300", "t2i/Hit@1 >= 0", model=model).met
    model.run.save(tmp_path / "run")
    (beside,) = read_checked(tmp_path / "run", tmp_path / "rob")
    assert only("drop(char_swap) <= 300", model=beside).value == only("drop(char_swap) <= 300", model=model).value
    audit = tmp_path / "audit"
    model.run.save(audit / "runs" / "m")
    (audit / "header.json").write_text(AUDIT, encoding="utf-8")
    (audit / "robustness").mkdir()
    (tmp_path / "rob").rename(audit / "robustness" / "m")
    (audited,) = read_checked(audit)
    assert audited.study is not None


def test_text_and_json_and_annotations() -> None:
    result = check("t2i/Hit@1 >= 10%", "i2t/Hit@1 >= 30%", "drop(char_swap, t2i/Hit@1) <= 5")
    lines = result.text(None).splitlines()
    assert lines[0].split() == ["measure", "required", "value", "verdict", "reason"]
    assert lines[2].split()[:3] == ["i2t/Hit@1", "≥", "30.0"]
    assert "NOT MET" in lines[2]
    assert "3 requirements: 1 not met. In percent. Differences of shares are in points." in " ".join(lines)
    content = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert (content["met"], [entry["met"] for entry in content["results"]]) == (False, [True, False, True])
    notice, error, _ = github_annotations(result)
    assert notice.startswith("::notice title=a%3A t2i/Hit@1 >= 10%25::t2i/Hit@1: ")
    assert error == "::error title=a%3A i2t/Hit@1 >= 30%25::i2t/Hit@1: 25.0 is below 30.0"
    assert github_annotations(check("group(category=dog, t2i/Hit@1) > 0"))[0].count(",") == 0
