"""The sdist and the wheel, built and installed into empty environments: ``make test-package``.

Packages are downloaded, so these tests are collected only where this folder is named. Of them, the slow ones try every
extra alone and the other interpreters that crosslens is for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEVELOPMENT = {"all", "docs", "lint", "test", "test-web", "test-servers", "test-notebooks"}
"""Extras that are not for users, and the one that has all others."""
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - DEVELOPMENT)
VERSIONS = ("3.11", "3.12", "3.13")
WHEEL_MEGABYTES = 8.0
"""The most that the wheel may have; docs/dependencies.md states how much it has."""
ENDINGS = {
    ".py",
    ".pyi",
    ".toml",
    ".html",
    ".txt",
    ".js",
    ".css",
    ".json",
    ".onnx",
    ".typed",
    ".svg",
    ".npz",
    ".gz",
    ".csv",
}
"""Of files that the package needs: anything else got into the wheel by accident."""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command that must succeed, without what the environment of this process adds; returns what it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**clean, **environment}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist, and of the wheel that is built from it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    path = os.pathsep.join(filter(None, sys.path))  # hatchling may be found by PYTHONPATH
    run(*build, "-t", "sdist", cwd=ROOT, PYTHONPATH=path)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    run(*build, "-t", "wheel", cwd=source, PYTHONPATH=path)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (file,) = built.glob("*.whl")
    return file


class Environment:
    """An empty environment with a wheel in it."""

    def __init__(self, folder: Path, python: str, *requirements: str | Path) -> None:
        self.folder, self.work = folder, folder / "work"
        run(python, "-m", "venv", folder, cwd=folder.parent)
        self.install(*requirements)
        self.work.mkdir()

    def install(self, *requirements: str | Path) -> None:
        self.run("python", "-m", "pip", "install", "-q", "--no-compile", *requirements, cwd=self.folder)

    def run(self, program: str, *words: str | Path, cwd: Path | None = None, **environment: str) -> str:
        return run(self.folder / "bin" / program, *words, cwd=cwd or self.work, **environment)

    def use(self, extra: str) -> None:
        """Do what an extra is for, in a folder of its own with a cache of its own."""
        folder = self.work / f"use-{extra}"
        folder.mkdir()
        self.run(
            "python", Path(__file__).parent / "uses.py", extra, cwd=folder, PYTHONPATH=str(ROOT / "tests" / "encode"),
            CROSSLENS_CACHE=str(folder / "cache"), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1",
        )  # fmt: skip


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("base"), sys.executable, wheel)


def test_contents(built: Path, wheel: Path) -> None:
    """The wheel has the package alone and is as small as is said; the sdist has what builds and tests it."""
    with zipfile.ZipFile(wheel) as archive:
        files = [Path(name) for name in archive.namelist()]
        info = f"crosslens-{PROJECT['version']}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
    assert {file.parts[0] for file in files} == {"crosslens", info}
    assert {file.suffix for file in files if file.parts[0] == "crosslens"} <= ENDINGS
    source = ROOT / "src"
    # Python and numba keep what they compiled beside the source.
    sources = {file.relative_to(source) for file in source.rglob("*") if file.is_file()}
    packaged = {file for file in sources if "__pycache__" not in file.parts}
    assert packaged == {file for file in files if file.parts[0] == "crosslens"}
    assert sum(file.parts[-1].startswith("LICENSE") for file in files if file.parts[0] == info) >= 3
    megabytes = wheel.stat().st_size / 1e6
    assert megabytes <= WHEEL_MEGABYTES
    stated = re.search(r"The wheel has ([\d.]+) MB", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert abs(float(stated[1]) - megabytes) < 0.3, f"docs/dependencies.md: the wheel has {megabytes:.1f} MB now"
    for version in VERSIONS:
        assert f"Classifier: Programming Language :: Python :: {version}" in metadata
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("pyproject.toml", "LICENSE", "CITATION.cff", "README.md", "tests/conftest.py", "examples/plugin"):
        assert any(file == name or file.startswith(f"{name}/") for file in names), name
    assert not any(file.startswith((".ci", ".venv", "site/", "dist/")) for file in names)


def test_base(base: Environment) -> None:
    """What needs no extra works without any, and help of every command is there."""
    assert base.run("crosslens", "--version").strip() == f"crosslens {PROJECT['version']}"
    script = (
        "from crosslens.cli import main; from crosslens.cli.app import HEADINGS, GROUPS\n"
        "words = [[name, *second] for names in HEADINGS.values() for name in names\n"
        "         for second in ([[]] + [[other] for other in GROUPS.get(name, ('', {}))[1]])]\n"
        "assert not [word for word in words if main([*word, '--help']) != 0]\n"
        "import crosslens, sys\n"
        "[getattr(crosslens, name) for name in crosslens.__all__]\n"
        "print('torch' in sys.modules)\n"
    )
    assert base.run("python", "-c", script).splitlines()[-1] == "False"
    base.use("base")


MISSING: Mapping[str, tuple[str, ...]] = {
    "demo": ("demo",),
    "scenes": ("synth", "--images", "2", "-o", "scenes"),
    "language": ("similarity", "--dataset", "captions.jsonl", "--phi", "spice", "-o", "phi.npy"),
    "semantic": ("similarity", "--dataset", "captions.jsonl", "--phi", "semantic", "-o", "phi.npy"),
    "encoders": ("encode", "--model", "clip:somewhere", "--dataset", "captions.jsonl", "-o", "encoded"),
    "train": ("train", "--recipe", "mine.toml", "--data", ".", "-o", "model"),
    "web": ("serve", "."),
    "ray": ("similarity", "--dataset", "captions.jsonl", "--engine", "ray", "-o", "phi.npy"),
    "imp": ("build", "clean", "titles.txt", "-o", "kept.txt"),
}
"""Commands that need an extra."""


def test_missing_extras(base: Environment) -> None:
    """Without its extra, a command ends with exit code 4 and the line that installs it."""
    folder = base.work / "missing"
    folder.mkdir()
    (folder / "captions.jsonl").write_text('{"image": "a.png", "caption": "a dog"}\n' * 2, encoding="utf-8")
    (folder / "titles.txt").write_text("A brown dog runs\n", encoding="utf-8")
    recipe = 'base = "flickr8k-vse-triplet"\n[data]\nkind = "precomp"\n'
    (folder / "mine.toml").write_text(recipe, encoding="utf-8")
    for split in ("train", "dev", "test"):
        np.save(folder / f"{split}_ims.npy", np.eye(4, dtype=np.float32))
        (folder / f"{split}_caps.txt").write_text("a dog\n" * 20, encoding="utf-8")
    for extra, words in MISSING.items():
        done = subprocess.run(
            [base.folder / "bin" / "crosslens", *words], cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": "", "CROSSLENS_CACHE": str(folder / "cache")},
        )  # fmt: skip
        assert (done.returncode, f"pip install 'crosslens[{extra}]'" in done.stderr) == (4, True), (words, done.stderr)


def test_plugin_example(base: Environment, tmp_path: Path) -> None:
    """The example of a plugin package, installed beside crosslens."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT / "examples" / "plugin",
        PYTHONPATH=os.pathsep.join(filter(None, sys.path)))  # fmt: skip
    base.install("--no-deps", next(tmp_path.glob("*.whl")))
    assert "Shallow@k" in base.run("crosslens", "metrics")
    assert "letters" in base.run("crosslens", "encode", "--list")


def test_typed_project(base: Environment) -> None:
    """A typed program that uses crosslens passes mypy --strict, and one with mistakes does not: types are installed."""
    base.install("mypy>=1.14")
    folder = ROOT / "tests" / "package" / "typed_project"
    options = ("--strict", "--cache-dir", base.folder / "mypy")
    plugin = ROOT / "examples" / "plugin" / "src" / "crosslens_example"
    base.run("python", "-m", "mypy", *options, folder / "right.py", *plugin.glob("*.py"))
    command = [base.folder / "bin" / "python", "-m", "mypy", *options]
    wrong = folder / "wrong.py"
    done = subprocess.run(
        [*command, wrong], cwd=base.work, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    expected = [number for number, line in enumerate(wrong.read_text().splitlines(), 1) if "# wrong" in line]
    lines = sorted({int(number) for number in re.findall(r"wrong\.py:(\d+): error", done.stdout)})
    assert lines == expected, done.stdout


def interpreters() -> Iterator[tuple[str, str]]:
    """The interpreters at hand: those of ``PYTHONS``, on the path, or of pyenv."""
    interpreters_given = os.environ.get("PYTHONS", "").split()
    for version in VERSIONS:
        pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}"))
        for candidate in (*interpreters_given, f"python{version}", *map(str, pyenv)):
            program = shutil.which(candidate)
            prints_version = "import sys; print('%d.%d' % sys.version_info[:2])"
            version_call = program and subprocess.run(
                [program, "-c", prints_version], capture_output=True, text=True, check=False
            )
            if version_call and version_call.stdout.strip() == version:
                yield version, str(program)
                break


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_python(version: str, wheel: Path, tmp_path: Path) -> None:
    """The base install and the demo's extra on every supported version of Python."""
    program = dict(interpreters()).get(version)
    if program is None:
        pytest.skip(f"no Python {version}: name it in PYTHONS")
    environment = Environment(tmp_path / "env", program, f"{wheel}[demo]")
    environment.use("base")
    environment.use("onnx")
    environment.use("scenes")


@pytest.mark.slow
@pytest.mark.parametrize("extra", EXTRAS)
def test_extra(extra: str, wheel: Path, tmp_path: Path) -> None:
    """An extra alone: crosslens can be imported, has its help, and does what the extra is for."""
    environment = Environment(tmp_path / "env", sys.executable, f"{wheel}[{extra}]")
    environment.run("crosslens", "--help")
    environment.use(extra)
    shutil.rmtree(environment.folder)


def test_every_extra_is_used() -> None:
    assert set(EXTRAS) <= set(re.findall(r"^def (\w+)\(", (Path(__file__).parent / "uses.py").read_text(), re.M))
