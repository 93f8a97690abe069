"""Dual encoders and vision backbones of the transformers library."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from crosslens.core import UsageError
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Array, Encoder
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import PretrainedModel, ids_and_mask

Features = Callable[[Any, dict[str, Any]], Any]


def _image_features(model: Any, inputs: dict[str, Any]) -> Any:
    return model.get_image_features(**inputs)


def _text_features(model: Any, inputs: dict[str, Any]) -> Any:
    return model.get_text_features(**inputs)


def vectors_of(output: Any) -> Any:
    """The vectors in what ``Architecture.images`` or ``texts`` returns.

    Of the library's own outputs that is one per item: the pooled one, or the first token's where a model projects every
    token (FLAVA).
    """
    if not hasattr(output, "pooler_output"):
        return output
    return output.pooler_output[:, 0] if output.pooler_output.ndim == 3 else output.pooler_output


@dataclass(frozen=True)
class Architecture:
    """How models of one architecture are loaded and asked; ``images`` and ``texts`` return vectors, or an output of the
    library that has them and the states of the tower's last layer."""

    kind: str
    types: tuple[str, ...]
    model_class: str = "AutoModel"
    images: Features = _image_features
    texts: Features | None = _text_features
    padding: bool | str = True
    longest: int | None = None
    scale: str | None = "logit_scale"


class TransformersEncoder(PretrainedModel):
    """A model of the transformers library. Images are prepared with Pillow and numpy; torchvision is not needed."""

    def __init__(self, architecture: Architecture, source: str, options: EncodeOptions) -> None:
        self.architecture = architecture
        super().__init__(
            architecture.kind, source, options, f"a {architecture.kind} encoder", architecture.model_class,
            types=architecture.types, texts=architecture.texts is not None, longest=architecture.longest,
        )  # fmt: skip
        self.abilities = frozenset((IMAGES, TEXTS) if architecture.texts else (IMAGES,))
        self.dimension = _dimension(self.model.config)
        self.logit_scale = _scale(self.model, architecture.scale)
        self.preprocessing = json.dumps(
            {"images": _described(self._prepare), "padding": architecture.padding, "longest": self._longest},
            sort_keys=True,
        )

    def encode_images(self, images: Sequence[Any]) -> Array:
        """The model's image features; for BLIP-2 one vector per query token."""
        return self._run(self.architecture.images, self._pixels(as_pictures(images)))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The model's text features; texts longer than the model takes are cut, as the library does."""
        if self.architecture.texts is None:
            raise UsageError(f"{self.name} encodes images only", fix="use a dual encoder for texts")
        return self._run(self.architecture.texts, self._tokens(texts, self.architecture.padding))

    def _run(self, features: Features, inputs: dict[str, Any]) -> Array:
        with self._compute.torch.inference_mode():
            return self._compute.numpy(vectors_of(features(self.model, inputs)))


def _described(processor: Any) -> dict[str, Any]:
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
    return model.text_proj(model.text_encoder(**ids_and_mask(inputs)).last_hidden_state[:, 0])


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


ARCHITECTURES: dict[str, Architecture] = {}
"""Kind → how its models are loaded and asked."""


def _enrol(architecture: Architecture, example: str, doc: str) -> None:
    ARCHITECTURES[architecture.kind] = architecture

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
    "BLIP-2, contrastive head (ITC): several vectors per image, the best of which counts; its matching head is a "
    "pair scorer.",
)
_enrol(
    Architecture(
        "dinov2", ("dinov2", "dinov2_with_registers", "dinov3_vit"), images=_first_token, texts=None, scale=None
    ),
    "facebook/dinov2-base",
    "DINOv2 and its successors, images only: the class token's vector.",
)
