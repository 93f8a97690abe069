"""What ``crosslens doctor`` says of an installation, whole and broken."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import crosslens.planning.doctor as doctor
from crosslens.planning import diagnose
from tests.commands import Call, call as call

ROOT = Path(__file__).resolve().parents[2]
REQUIRES = [
    "numpy>=1.26", "missing-package>=1", 'torch>=2.6; extra == "train"', 'safetensors>=0.4; extra == "train"',
    'crosslens[train]; extra == "demo"', 'pillow>=11; extra == "scenes"',
]  # fmt: skip


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """An installation with these packages, an empty cache, and no tools."""
    versions = {"crosslens": "0.1.0", "numpy": "2.1", "missing-package": "1.0"}

    monkeypatch.setattr(doctor, "requires", lambda name: REQUIRES)
    monkeypatch.setattr(doctor, "installed_version", versions.get)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return versions


def test_extras_with_what_they_lack(installed: dict[str, str], call: Call) -> None:
    installed["torch"] = "2.6.1"
    done = call("doctor", "--json")
    assert done.code == 0
    extras = done.json["extras"]
    assert extras["train"]["state"] == "in part"
    assert extras["train"]["missing"] == ["safetensors"]
    assert extras["train"]["command"] == "pip install 'crosslens[train]'"
    assert [package["name"] for package in extras["demo"]["packages"]] == ["torch", "safetensors"], "through an extra"
    assert extras["scenes"]["state"] == "not installed"
    text = call("doctor").out
    assert "pip install 'crosslens[demo,scenes,train]'" in text
    assert "No problems" in text


def test_what_is_broken(installed: dict[str, str], call: Call, tmp_path: Path) -> None:
    """A version that will not do, a missing requirement and a cache that cannot be written end with exit code 4."""
    installed |= {"safetensors": "0.3"}
    del installed["missing-package"]
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    done = call("doctor", "--json")
    assert done.code == 4
    problems = {problem["problem"]: problem["fix"] for problem in done.json["problems"]}
    assert problems["safetensors 0.3 is installed, >=0.4 is needed"] == "pip install 'safetensors>=0.4'"
    assert "missing-package is missing, which crosslens cannot do without" in problems
    assert any(problem.endswith("cache cannot be written") for problem in problems)
    assert "Problems" in call("doctor").out


def test_a_package_that_cannot_be_imported(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(doctor.cache_folder()).parent
    (folder / "broken_module.py").write_text("raise ImportError('its library is gone')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(doctor, "packages_distributions", lambda: {"broken_module": ["missing_package"]})
    (problem,) = diagnose(load=True).problems
    assert problem.problem == "missing-package 1.0 cannot be imported: ImportError: its library is gone"


def test_caches(installed: dict[str, str], tmp_path: Path, call: Call) -> None:
    (tmp_path / "cache" / "parses").mkdir(parents=True)
    (tmp_path / "cache" / "parses" / "a.parquet").write_bytes(b"x" * 1500)
    caches = {cache["what"]: cache for cache in call("doctor", "--json").json["caches"]}
    assert (caches["crosslens: parses"]["files"], caches["crosslens: parses"]["size"]) == (1, 1500)
    assert caches["Hugging Face hub"]["folder"] == str(tmp_path / "hub")


def test_every_extra_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    others = {
        name for name in project["optional-dependencies"] if name.partition("-")[0] in ("all", "docs", "lint", "test")
    }
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"]) - others
