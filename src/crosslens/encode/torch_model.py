"""What every model that runs on torch shares: the device, the precision, loading, and numpy at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosslens.core import (
    CrosslensError,
    InputError,
    UsageError,
    read_json_file,
    torch_device,
)
from crosslens.encode.encoder import (
    ENCODERS,
    Array,
    import_library,
    name_of,
    require_library,
)
from crosslens.encode.hub import find_model
from crosslens.encode.model_code import own_code
from crosslens.encode.options import EncodeOptions

SAFE = {"local_files_only": True, "trust_remote_code": False}
"""How everything is loaded: from files that are here, and without running code that comes with them."""
_UNLIMITED = 100_000  # tokenizers without a limit carry an astronomic one


class Compute:
    """A device and a precision to compute in."""

    def __init__(self, options: EncodeOptions, purpose: str) -> None:
        self.torch = torch = import_library("torch", purpose)
        self.device = torch_device(options.model_device)
        self.dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[options.precision]

    def moved(self, model: Any) -> Any:
        """The model there, in that precision, ready to infer."""
        return model.to(device=self.device, dtype=self.dtype).eval()

    def inputs(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors there; numbers with a fraction in that precision, token ids and masks as they are."""
        return {
            name: value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)
            for name, value in values.items()
        }

    def numpy(self, tensor: Any) -> Array:
        """A tensor as a float32 array."""
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
        library = import_library("transformers", purpose)
        if types:
            check_type(folder, types, kind)
        with loading(folder):
            loaded = getattr(library, model_class).from_pretrained(folder, **SAFE)
            self.model = self._compute.moved(loaded)
            self._prepare: Any = None
            if images:
                self._prepare = library.AutoImageProcessor.from_pretrained(folder, **SAFE, backend="pil")
            self._tokenizer: Any = None
            if texts:
                self._tokenizer = library.AutoTokenizer.from_pretrained(folder, **SAFE)
            self._processor: Any = None
            if joint:
                self._processor = library.AutoProcessor.from_pretrained(folder, **SAFE, backend="pil")
        self._longest = longest_text(self._tokenizer, self.model.config, longest)

    def _pixels(self, pictures: Sequence[Any]) -> dict[str, Any]:
        """What the model sees of pictures."""
        return self._compute.inputs(dict(self._prepare(images=pictures, return_tensors="pt")))

    def _tokens(self, texts: Sequence[str], padding: bool | str = True) -> dict[str, Any]:
        """What the model reads of texts, which are cut where it takes no more."""
        cut = {"truncation": self._longest is not None, "max_length": self._longest}
        return self._compute.inputs(dict(self._tokenizer(list(texts), padding=padding, return_tensors="pt", **cut)))


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
        text = str(error).strip()
        raise own_code(folder) or InputError(
            f"the model cannot be loaded: {text.splitlines()[0] if text else type(error).__name__}",
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


def longest_text(tokenizer: Any, config: Any, limit: int | None = None) -> int | None:
    """How many tokens of a text the model takes."""
    if tokenizer is None:
        return None
    positions = getattr(getattr(config, "text_config", None), "max_position_embeddings", None)
    known = [length for length in (tokenizer.model_max_length, positions, limit) if length and length < _UNLIMITED]
    return int(min(known)) if known else None


def weights_revision(model: Any) -> str:
    """A hash of a torch model's weights, for libraries that do not say where they took them from."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()
