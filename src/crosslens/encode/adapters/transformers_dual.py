"""Dual encoders and vision backbones of the transformers library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, InputError, MissingExtraError, UsageError
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Array, Encoder, name_of
from crosslens.encode.hub import find_model
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import Compute

Features = Callable[[Any, dict[str, Any]], Any]

_UNLIMITED = 100_000  # tokenizers without a limit carry an astronomic one


def _image_features(model: Any, inputs: dict[str, Any]) -> Any:
    return _pooled(model.get_image_features(**inputs))


def _text_features(model: Any, inputs: dict[str, Any]) -> Any:
    return _pooled(model.get_text_features(**inputs))


def _pooled(output: Any) -> Any:
    """One vector per item: the pooled output, or the first token's where a model projects every token (FLAVA)."""
    pooled = getattr(output, "pooler_output", output)
    return pooled[:, 0] if pooled.ndim == 3 else pooled


@dataclass(frozen=True)
class Architecture:
    """How models of one architecture are loaded and asked."""

    kind: str
    types: tuple[str, ...]
    model_class: str = "AutoModel"
    images: Features = _image_features
    texts: Features | None = _text_features
    padding: bool | str = True
    longest: int | None = None
    scale: str | None = "logit_scale"


class TransformersEncoder:
    """A model of the transformers library. Images are prepared with Pillow and numpy; torchvision is not needed."""

    def __init__(self, architecture: Architecture, source: str, options: EncodeOptions) -> None:
        self.architecture, self.name = architecture, name_of(architecture.kind, source)
        self._compute = Compute(options, f"a {architecture.kind} encoder")
        self.device = self._compute.device
        library = transformers_or_raise(f"a {architecture.kind} encoder")
        location = find_model(source, options)
        self.revision = location.revision
        check_type(location.folder, architecture.types, architecture.kind)
        with loading(location.folder):
            loaded = getattr(library, architecture.model_class).from_pretrained(location.folder, local_files_only=True)
            self.model = self._compute.moved(loaded)
            self._prepare = library.AutoImageProcessor.from_pretrained(
                location.folder, local_files_only=True, backend="pil"
            )
            self._tokenizer = (
                library.AutoTokenizer.from_pretrained(location.folder, local_files_only=True)
                if (architecture.texts)
                else None
            )
        self.abilities = frozenset((IMAGES, TEXTS) if architecture.texts else (IMAGES,))
        self._longest = longest_text(self._tokenizer, self.model.config, architecture.longest)
        self.dimension = _dimension(self.model.config)
        self.logit_scale = _scale(self.model, architecture.scale)
        self.preprocessing = json.dumps(
            {"images": described(self._prepare), "padding": architecture.padding, "longest": self._longest},
            sort_keys=True,
        )

    def encode_images(self, images: Sequence[Any]) -> Array:
        """The model's image features; for BLIP-2 one vector per query token."""
        inputs = self._prepare(images=as_pictures(images), return_tensors="pt")
        return self._run(self.architecture.images, dict(inputs))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The model's text features; texts longer than the model takes are cut, as the library does."""
        if self.architecture.texts is None or self._tokenizer is None:
            raise UsageError(f"{self.name} encodes images only", fix="use a dual encoder for texts")
        inputs = self._tokenizer(
            list(texts),
            padding=self.architecture.padding,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        )
        return self._run(self.architecture.texts, dict(inputs))

    def _run(self, features: Features, inputs: dict[str, Any]) -> Array:
        with self._compute.torch.inference_mode():
            return self._compute.numpy(features(self.model, self._compute.inputs(inputs)))


def transformers_or_raise(purpose: str) -> Any:
    """The transformers library."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(purpose, "transformers", "encoders") from error
    return transformers


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Load quietly; whatever the library says about a folder that it cannot load is said with the folder."""
    logging = transformers_or_raise("a model").utils.logging
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except CrosslensError:
        raise
    except Exception as error:  # from a missing file to a torn weight: a kind of error for each
        text = str(error).strip()
        raise InputError(
            f"the model cannot be loaded: {text.splitlines()[0] if text else type(error).__name__}",
            file=folder,
            expected="a model folder as save_pretrained writes it, with its tokenizer and image processor",
            fix="fetch or save the model again; check that the files of its processor are there, too",
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()


def check_type(folder: Path, types: Sequence[str], kind: str) -> None:
    """Raise if the folder holds another architecture than its kind says, and name the kind that fits."""
    try:
        model_type = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise InputError("no readable config.json", file=folder, expected="a model folder", fix="check the path") from (
            error
        )
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


def described(processor: Any) -> dict[str, Any]:
    """An image processor's settings; where it was loaded from does not matter."""
    settings = processor.to_dict()
    return {key: str(value) for key, value in settings.items() if not key.startswith("_") and "path" not in key}


def _dimension(config: Any) -> int | None:
    for name in ("image_text_hidden_size", "projection_dim", "hidden_size"):
        if isinstance(getattr(config, name, None), int):
            return int(getattr(config, name))
    text = getattr(config, "text_config", None)
    return int(text.hidden_size) if text is not None else None


def _scale(model: Any, name: str | None) -> float | None:
    """The factor on cosines: kept as its logarithm, except by ALIGN, which divides by a temperature."""
    value = getattr(model, name, None) if name else None
    if value is None:
        return None
    value = value.detach().float()
    return float(1 / value if name == "temperature" else value.exp())


def _blip_images(model: Any, inputs: dict[str, Any]) -> Any:
    return model.vision_proj(model.vision_model(**inputs).last_hidden_state[:, 0])


def _blip_texts(model: Any, inputs: dict[str, Any]) -> Any:
    text_inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    return model.text_proj(model.text_encoder(**text_inputs).last_hidden_state[:, 0])


def _blip2_images(model: Any, inputs: dict[str, Any]) -> Any:
    image_states = model.vision_model(**inputs).last_hidden_state
    queries = model.query_tokens.expand(len(image_states), -1, -1)
    mask = image_states.new_ones(image_states.shape[:2]).long()
    outputs = model.qformer(query_embeds=queries, encoder_hidden_states=image_states, encoder_attention_mask=mask)
    return model.vision_projection(outputs.last_hidden_state.to(model.vision_projection.weight.dtype))


def _blip2_texts(model: Any, inputs: dict[str, Any]) -> Any:
    words = model.embeddings(input_ids=inputs["input_ids"])
    outputs = model.qformer(query_embeds=words, query_length=0, attention_mask=inputs["attention_mask"])
    return model.text_projection(outputs.last_hidden_state[:, 0].to(model.text_projection.weight.dtype))


def _first_token(model: Any, inputs: dict[str, Any]) -> Any:
    return model(**inputs).last_hidden_state[:, 0]


def _enrol(architecture: Architecture, example: str, doc: str) -> None:
    def load(source: str, options: EncodeOptions) -> Encoder:
        return TransformersEncoder(architecture, source, options)

    load.__doc__ = doc
    ENCODERS.register(architecture.kind, types=architecture.types, example=example, extra="encoders")(load)


_enrol(
    Architecture("clip", ("clip",)),
    "openai/clip-vit-base-patch32",
    "CLIP: OpenAI's models and all others that transformers stores in the same form.",
)
_enrol(
    Architecture("siglip", ("siglip", "siglip2"), padding="max_length", longest=64),
    "google/siglip-base-patch16-224",
    "SigLIP and SigLIP 2; texts are padded to the full length, as in training.",
)
_enrol(
    Architecture("align", ("align",), longest=64, scale="temperature"),
    "kakaobrain/align-base",
    "ALIGN: EfficientNet and BERT; texts up to 64 tokens.",
)
_enrol(
    Architecture("altclip", ("altclip",)), "BAAI/AltCLIP", "AltCLIP: CLIP's image tower with a multilingual text tower."
)
_enrol(
    Architecture("groupvit", ("groupvit",)),
    "nvidia/groupvit-gcc-yfcc",
    "GroupViT: an image tower that groups patches into segments.",
)
_enrol(
    Architecture("flava", ("flava",)),
    "facebook/flava-full",
    "FLAVA: the unimodal towers, projected as for its global contrastive loss.",
)
_enrol(
    Architecture("blip", ("blip",), "BlipForImageTextRetrieval", _blip_images, _blip_texts, scale=None),
    "Salesforce/blip-itm-base-coco",
    "BLIP, contrastive head (ITC); its matching head is a pair scorer.",
)
_enrol(
    Architecture("blip2", ("blip-2",), "Blip2ForImageTextRetrieval", _blip2_images, _blip2_texts, scale=None),
    "Salesforce/blip2-itm-vit-g",
    "BLIP-2, contrastive head (ITC): several vectors per image, the best of which counts.",
)
_enrol(
    Architecture(
        "dinov2", ("dinov2", "dinov2_with_registers", "dinov3_vit"), images=_first_token, texts=None, scale=None
    ),
    "facebook/dinov2-base",
    "DINOv2 and its successors, images only: the class token's vector.",
)
