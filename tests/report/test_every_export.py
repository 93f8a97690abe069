"""What every export promises, whoever registered it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import typer

from crosslens.cli import app
from crosslens.core import CrosslensError, UnknownNameError, UsageError
from crosslens.report import EXPORTS, render_export, write_named_export
from crosslens.values import Run

NAMES = [entry.name for entry in EXPORTS]
SEVERAL = [entry.name for entry in EXPORTS if entry.details.get("several")]
SINGLE = [name for name in NAMES if name not in SEVERAL]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_renders_a_run(run: Run, name: str) -> None:
    files = render_export(run, name)
    assert set(files) == {""} or set(files) <= {"i2t", "t2i"}
    assert all(text.endswith("\n") and text.strip() for text in files.values())


def test_it_is_deterministic(run: Run, name: str, tmp_path: Path) -> None:
    first = {
        path: path.read_bytes() for path in write_named_export(render_export(run, name), "a", name, folder=tmp_path)
    }
    again = write_named_export(render_export(run, name), "a", name, folder=tmp_path)
    assert {path: path.read_bytes() for path in again} == first


def test_it_takes_one_direction(run: Run, name: str) -> None:
    files = render_export(run, name)
    if "" not in files:
        assert render_export(run, name, direction="t2i") == {"": files["t2i"]}
        with pytest.raises(UnknownNameError, match="direction"):
            render_export(run, name, direction="up")


def test_it_takes_chosen_metrics(run: Run, name: str) -> None:
    files = render_export(run, name, metrics="Hit@1")
    assert set(files) == set(render_export(run, name))
    assert "MedR" not in "".join(files.values())


@pytest.mark.parametrize("name", SINGLE)
def test_it_refuses_several_runs(run: Run, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} files hold one run, not 2") as caught:
        render_export([run, run], name)
    assert all(name_of_export in str(caught.value.fix) for name_of_export in SEVERAL)


@pytest.mark.parametrize("name", SEVERAL)
def test_it_takes_several_runs(run: Run, name: str) -> None:
    text = render_export([run, replace(run, name="other model")], name)[""]
    assert text.count("model") >= 2


def test_it_refuses_no_runs(name: str) -> None:
    with pytest.raises(UsageError):
        render_export([], name)


@pytest.mark.parametrize("name", SINGLE)
def test_it_refuses_a_run_without_what_it_holds(run: Run, name: str) -> None:
    with pytest.raises(CrosslensError) as caught:
        render_export(replace(run, values={}, rankings={}), name)
    assert "toy model" in caught.value.problem
    assert caught.value.fix


def test_its_files_have_a_suffix_of_their_own(name: str) -> None:
    suffix = EXPORTS[name].details["suffix"]
    assert suffix.startswith(".")
    others = [entry.details["suffix"] for entry in EXPORTS if entry.name != name]
    assert suffix not in others
    assert set(EXPORTS[name].details) <= {"suffix", "several"}


def test_it_is_documented(name: str) -> None:
    entry = EXPORTS[name]
    assert entry.summary.endswith(".")
    export = typer.main.get_command(app.app).commands["export"]  # type: ignore[attr-defined]
    (to,) = [parameter for parameter in export.params if parameter.name == "to"]
    assert name in to.help.replace(".", "").replace(",", "").split()
