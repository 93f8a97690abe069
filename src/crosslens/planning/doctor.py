"""What is installed and works, what is missing, and how to get it: ``crosslens doctor``."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, requires
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, FactList, Presented, Section, Table, Text, available_cores
from crosslens.engine import torch_devices
from crosslens.language import find_pipeline, installed_version
from crosslens.planning.plan import format_bytes
from crosslens.storage import cache_folder, json_form

NAME = "crosslens"
EXTRAS = {
    "demo": "crosslens demo: drawn scenes and the built-in encoder",
    "onnx": "the built-in encoder tiny, models exported to ONNX",
    "scenes": "drawn scenes, changed pictures",
    "pictures": "charts as .png and .pdf",
    "web": "crosslens serve, judging",
    "encoders": "CLIP, SigLIP, BLIP and others, from transformers",
    "openclip": "models of open_clip",
    "sentence": "sentence encoders, text-only retrieval",
    "semantic": "the similarity semantic, with its weights",
    "language": "parsed captions: SPICE, scene graphs, granularity",
    "polysemy": "clusters of images, UMAP maps",
    "approximate": "approximate neighbours (faiss)",
    "torch": "ranking on GPUs, the metric for training loops",
    "train": "training models on stored features",
    "hf": "Hugging Face datasets",
    "eccv": "positives of ECCV Caption and CxC",
    "imp": "cleaning captions, IMP builds",
    "remote": "vectors at s3://, gs://, hf:// and https://",
    "ray": "work on a Ray cluster",
    "postgres": "judgements in PostgreSQL",
    "mlflow": "export to MLflow",
    "wandb": "export to Weights & Biases",
}
"""Extras of users → what they are for."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox")
_NAMED = 3
"""Missing packages and extras that are listed by name."""
_SECONDS = 120
"""How long a package may take to be imported."""


@dataclass(frozen=True)
class Package:
    """A package that crosslens or an extra of it asks for."""

    name: str
    wanted: str
    """The versions that will do, as in ``>=2.6``; empty for any."""
    version: str | None
    """None: not installed."""
    fits: bool = False


@dataclass(frozen=True)
class Extra:
    """An extra and its packages."""

    name: str
    purpose: str
    packages: tuple[Package, ...]

    @property
    def missing(self) -> list[str]:
        return [package.name for package in self.packages if package.version is None]

    @property
    def state(self) -> str:
        if not self.missing:
            return "installed"
        return "not installed" if len(self.missing) == len(self.packages) else "in part"


@dataclass(frozen=True)
class CacheUse:
    """A folder that fills by itself."""

    what: str
    folder: Path
    files: int
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Fault:
    """Something that is installed and does not work."""

    problem: str
    fix: str


@dataclass(frozen=True)
class Diagnosis(Presented):
    """The state of an installation."""

    system: tuple[tuple[str, str], ...]
    packages: tuple[Package, ...]
    extras: tuple[Extra, ...]
    tools: tuple[tuple[str, str], ...]
    """What is neither a package nor an extra: devices, pipelines, fonts, browsers, plugins."""
    caches: tuple[CacheUse, ...]
    problems: tuple[Fault, ...]

    title = "The installation of crosslens"

    def as_dict(self) -> dict[str, Any]:
        extras = {
            extra.name: {
                "state": extra.state, "purpose": extra.purpose, "missing": extra.missing,
                "command": f"pip install '{NAME}[{extra.name}]'" if extra.missing else "", "packages": extra.packages,
            }
            for extra in self.extras
        }  # fmt: skip
        return json_form(
            {
                "system": dict(self.system), "packages": self.packages, "extras": extras,
                "tools": dict(self.tools), "problems": self.problems, "caches": self.caches,
            }
        )  # fmt: skip

    def sections(self) -> Iterator[Section]:
        base = tuple((package.name, package.version or "missing", package.wanted or "any") for package in self.packages)
        yield Section("System", (FactList(self.system), Table(("package", "version", "needed"), base, "lll")))
        rows = []
        for extra in self.extras:  # of one that is there in part, the first packages that it lacks
            more = f" and {len(extra.missing) - _NAMED} more" if len(extra.missing) > _NAMED else ""
            lacks = ", ".join(extra.missing[:_NAMED]) + more if extra.state == "in part" else ""
            rows.append((extra.name, extra.state, extra.purpose, lacks))
        missing = [extra.name for extra in self.extras if extra.missing]
        how = f"To install what is missing: pip install '{NAME}[{','.join(missing)}]'."
        if len(missing) > _NAMED:
            how = f"To install an extra: pip install '{NAME}[NAME]'; all but openclip: pip install '{NAME}[all]'."
        notes = Text.of(how if missing else "")
        yield Section("Extras", (Table(("extra", "state", "for", "lacks"), tuple(rows), "llll"), notes))
        yield Section("Devices, data and tools", (FactList(self.tools),))
        caches = tuple(
            (cache.what, str(cache.folder), f"{cache.files:,}", format_bytes(cache.size)) for cache in self.caches
        )
        notes = Text.of(
            f"Caches may be removed at any time; CROSSLENS_CACHE names another folder than {cache_folder()}."
        )
        yield Section("Caches", (Table(("cache", "folder", "files", "size"), caches, "llrr"), notes))
        wrong = tuple((problem.problem, problem.fix) for problem in self.problems)
        fine = Text.of("No problems: every installed package has a version that will do.")
        yield Section("Problems" if wrong else "", (FactList(wrong) if wrong else fine,))


def diagnose(*, load: bool = False) -> Diagnosis:
    """Look at the installation: versions, extras, devices, data, caches. Nothing is changed or downloaded.

    ``load`` also imports every installed package, each in a process of its own.
    """
    problems: list[Fault] = []
    try:
        packages, extras = _required(problems)
    except PackageNotFoundError:
        problems.append(Fault("crosslens runs from a folder and is not installed", "pip install crosslens, or -e ."))
        packages, extras = (), ()
    if load:
        problems += _import_problems({package for extra in extras for package in extra.packages} | set(packages))
    try:
        parser = str(find_pipeline())
    except CrosslensError as error:
        parser = f"none, so captions are not parsed: {error.fix}"
    data = (("spaCy pipeline", parser), ("WordNet", "3.0, built in"))
    tools = [*_devices(problems), *data, *_desktop()]
    # What other installed packages announce, and whether it can be loaded.
    groups = sorted(group for group in entry_points().groups if group.startswith(f"{NAME}."))
    for point in (point for group in groups for point in entry_points(group=group)):
        package = point.dist.name if point.dist is not None else ""
        if package == NAME:
            continue
        try:
            point.load()
        except Exception as error:
            fix = f"update or remove the package: pip uninstall {package}"
            problems.append(Fault(f"the plugin {package} ({point.value}) cannot be loaded: {error}", fix))
        tools.append(("plugin", f"{package} {installed_version(package) or ''}: {point.group} {point.name}"))
    cores, free = f"{available_cores()} cores", f"{format_bytes(shutil.disk_usage(Path.cwd()).free)} free on disk"
    system = (
        (NAME, f"{installed_version(NAME) or 'not installed'}, in {Path(__file__).resolve().parents[1]}"),
        ("Python", f"{platform.python_version()}, {sys.executable}"),
        ("machine", f"{platform.system()} {platform.machine()}, {cores}, {free}"),
    )
    return Diagnosis(system, packages, extras, tuple(tools), _caches(problems), tuple(problems))


def _required(problems: list[Fault]) -> tuple[tuple[Package, ...], tuple[Extra, ...]]:
    """The packages that crosslens needs, and the extras with theirs; a version that will not do is a problem."""
    from packaging.requirements import Requirement

    required = [Requirement(line) for line in requires(NAME) or ()]

    def packages_of(extra: str) -> Iterator[Package]:
        for requirement in required:
            marker = requirement.marker
            if (marker is None) != (not extra) or (marker is not None and not marker.evaluate({"extra": extra})):
                continue
            if requirement.name == NAME:
                for other in sorted(requirement.extras):
                    yield from packages_of(other)
                continue
            installed, versions = installed_version(requirement.name), requirement.specifier
            fits = installed is not None and versions.contains(installed, prereleases=True)
            yield Package(requirement.name, str(versions), installed, fits)

    needed = tuple(packages_of(""))
    extras = tuple(Extra(name, purpose, tuple(dict.fromkeys(packages_of(name)))) for name, purpose in EXTRAS.items())
    for package in dict.fromkeys((*needed, *(package for extra in extras for package in extra.packages))):
        fix = f"pip install '{package.name}{package.wanted}'"
        if package.version is None and package in needed:
            problems.append(Fault(f"{package.name} is missing, which crosslens cannot do without", fix))
        elif package.version is not None and not package.fits:
            problems.append(Fault(f"{package.name} {package.version} is installed, {package.wanted} is needed", fix))
    return needed, extras


def _import_problems(packages: set[Package]) -> Iterator[Fault]:
    modules = packages_distributions()
    for package in sorted(packages, key=lambda package: package.name):
        if package.version is None:
            continue
        plain = package.name.lower().replace("_", "-")
        of_package = [
            module for module, names in modules.items() if plain in (name.lower().replace("_", "-") for name in names)
        ]
        # The main one, where a package brings several, such as tests of its own.
        public = sorted((module for module in of_package if not module.startswith("_")), key=len)
        for module in public[:1]:
            command = [sys.executable, "-c", f"import {module}"]
            try:
                process = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
                reason = (process.stderr.strip().splitlines() or ["it crashed"])[-1] if process.returncode else ""
            except subprocess.TimeoutExpired:
                reason = f"it takes more than {_SECONDS} s"
            if reason:
                fix = f"pip install --force-reinstall '{package.name}{package.wanted}'"
                yield Fault(f"{package.name} {package.version} cannot be imported: {reason}", fix)


def _devices(problems: list[Fault]) -> Iterator[tuple[str, str]]:
    driver = shutil.which("nvidia-smi") is not None
    if installed_version("torch") is None:
        how = "torch is not installed, so the driver's GPUs are not used" if driver else "none is used without torch"
        yield "GPU", f"{how}: pip install '{NAME}[torch]'"
        return
    try:
        import torch
    except Exception as error:
        problems.append(Fault(f"torch cannot be imported: {error}", "pip install --force-reinstall torch"))
        return
    gpus = [torch.cuda.get_device_properties(device) for device in torch_devices(None) if device.type == "cuda"]
    for gpu in gpus:
        yield "GPU", f"{gpu.name}, {format_bytes(gpu.total_memory)}"
    if not gpus:
        build = "this torch is built without CUDA" if torch.version.cuda is None else "torch sees none"
        yield "GPU", f"none: {build}" + (", although there is a driver (nvidia-smi)" if driver else "; cores are used")


def _desktop() -> Iterator[tuple[str, str]]:
    use = "for text in .png and .pdf charts; scenes bring their own"
    lists = shutil.which("fc-list")
    if lists is None:
        yield "fonts", f"not known: fc-list (fontconfig) is missing; {use}"
    else:
        counts = []
        for words in ((":", "family"), (":lang=zh", "family")):
            with suppress(OSError, subprocess.TimeoutExpired):
                process = subprocess.run([lists, *words], capture_output=True, text=True, timeout=_SECONDS, check=False)
                counts.append(len(set(process.stdout.splitlines())))
        families, chinese = (*counts, 0, 0)[:2]
        without = "" if chinese else ", none with Chinese characters (Debian: apt install fonts-noto-cjk)"
        none = "none (Debian: apt install fonts-dejavu)"
        yield "fonts", f"{f'{families} families{without}' if families else none}; {use}"
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    yield "browser", browser or "none on the path; pages are plain files, which open in any browser elsewhere, too"


def _caches(problems: list[Fault]) -> tuple[CacheUse, ...]:
    cache = cache_folder()
    above = next((folder for folder in (cache, *cache.absolute().parents) if folder.exists()), cache)
    if not (above.is_dir() and os.access(above, os.W_OK)):
        problems.append(Fault(f"the cache {cache} cannot be written", "choose another folder with CROSSLENS_CACHE"))
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface"))
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub")).expanduser()
    folders = {f"{NAME}: {path.name}": path for path in (sorted(cache.iterdir()) if cache.is_dir() else ())}
    caches = []
    for label, folder in {**(folders or {NAME: cache}), "Hugging Face hub": hub}.items():
        sizes = [folder.stat().st_size] if folder.is_file() else []
        for parent, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):  # removed meanwhile
                    sizes.append(os.lstat(os.path.join(parent, name)).st_size)
        caches.append(CacheUse(label, folder, len(sizes), sum(sizes)))
    return tuple(caches)
