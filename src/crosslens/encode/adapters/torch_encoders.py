"""Encoders on torch: two towers of the transformers library, its vision models, sentence-transformers, OpenCLIP."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosslens.core import InputError, UsageError, argument
from crosslens.encode.adapters.onnx import packaged_sentence_encoder
from crosslens.encode.batches import as_pictures
from crosslens.encode.encoder import (
    ENCODERS,
    IMAGES,
    TEXTS,
    Encoder,
    import_library,
    is_local,
    name_of,
    named_with,
    require_library,
    word_vectors,
)
from crosslens.encode.loading import (
    Compute,
    PretrainedModel,
    find_model,
    first_line,
    ids_and_mask,
    loading,
    refuse_own_modules,
)
from crosslens.encode.options import EncodeOptions
from crosslens.storage import Array, is_offline

Features = Callable[[Any, dict[str, Any]], Any]
"""A model and its inputs → vectors, or an output of the library that has them and the states of the last layer."""


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
    """How models of one architecture are loaded and asked."""

    kind: str
    types: tuple[str, ...]
    model_class: str = "AutoModel"
    images: Features = lambda model, inputs: model.get_image_features(**inputs)
    texts: Features | None = lambda model, inputs: model.get_text_features(**inputs)
    padding: bool | str = True
    longest: int | None = None
    scale: str | None = "logit_scale"


class TransformersEncoder(PretrainedModel, Encoder):
    """A model of the transformers library. Images are prepared with Pillow and numpy; torchvision is not needed."""

    def __init__(self, architecture: Architecture, source: str, options: EncodeOptions) -> None:
        self.architecture = architecture
        super().__init__(
            architecture.kind, source, options, f"a {architecture.kind} encoder", architecture.model_class,
            types=architecture.types, texts=architecture.texts is not None, longest=architecture.longest,
        )  # fmt: skip
        self.abilities = frozenset((IMAGES, TEXTS) if architecture.texts else (IMAGES,))
        config: Any = self.model.config
        sizes = [getattr(config, name, None) for name in ("image_text_hidden_size", "projection_dim", "hidden_size")]
        sizes.append(getattr(getattr(config, "text_config", None), "hidden_size", None))
        self.dimension = next((int(size) for size in sizes if isinstance(size, int)), None)
        # The factor on cosines is kept as its logarithm, except by ALIGN, which divides by a temperature.
        scale = getattr(self.model, architecture.scale, None) if architecture.scale else None
        if scale is not None:
            scale = scale.detach().float()
            self.logit_scale = float(1 / scale if architecture.scale == "temperature" else scale.exp())
        # Where the image processor was loaded from does not matter.
        prepared = {
            key: str(value)
            for key, value in self._prepare.to_dict().items()
            if not key.startswith("_") and "path" not in key
        }
        settings = {"images": prepared, "padding": architecture.padding, "longest": self._longest}
        self.preprocessing = json.dumps(settings, sort_keys=True)

    def encode_images(self, images: Sequence[Any]) -> Array:
        """The model's image features; for BLIP-2 one vector per query token."""
        return self._run(self.architecture.images, self._pixels(as_pictures(images)))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The model's text features; texts longer than the model takes are cut, as the library does."""
        if self.architecture.texts is None:
            return super().encode_texts(texts)
        return self._run(self.architecture.texts, self._tokens(texts, self.architecture.padding))

    def _run(self, features: Features, inputs: dict[str, Any]) -> Array:
        with self._compute.torch.inference_mode():
            return self._compute.numpy(vectors_of(features(self.model, inputs)))


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


ARCHITECTURES: dict[str, Architecture] = {}
"""Kind → how its models are loaded and asked."""


def _enrol(architecture: Architecture, example: str, doc: str) -> None:
    ARCHITECTURES[architecture.kind] = architecture

    def load(source: str, options: EncodeOptions) -> Encoder:
        return TransformersEncoder(architecture, source, options)

    load.__doc__ = doc
    names = named_with(architecture.kind, architecture.kind, *(name.partition("_")[0] for name in architecture.types))
    ENCODERS.register(architecture.kind, types=architecture.types, names=names, example=example, extra="encoders")(load)


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
    Architecture(
        "blip",
        ("blip",),
        "BlipForImageTextRetrieval",
        lambda model, inputs: model.vision_proj(model.vision_model(**inputs).last_hidden_state[:, 0]),
        lambda model, inputs: model.text_proj(model.text_encoder(**ids_and_mask(inputs)).last_hidden_state[:, 0]),
        scale=None,
    ),
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
        "dinov2",
        ("dinov2", "dinov2_with_registers", "dinov3_vit"),
        images=lambda model, inputs: model(**inputs).last_hidden_state[:, 0],
        texts=None,
        scale=None,
    ),
    "facebook/dinov2-base",
    "DINOv2 and its successors, images only: the class token's vector.",
)


_SOURCE = re.compile(r"(?P<path>.*?)(?:#(?P<side>\d{1,3}))?")


@ENCODERS.register("grid", example="openai/clip-vit-base-patch32#3", extra="encoders", path=_SOURCE.pattern)
class GridEncoder(PretrainedModel, Encoder):
    """Grid features, images only: a vector for every patch of a vision model; ``#3`` averages them to 3 × 3.

    For the models that ``crosslens train`` trains on local features. The source is any vision model of transformers, or
    a dual encoder, of which the image tower is used. The patches are those of the last layer, row by row, without the
    tokens that stand for the whole picture.
    """

    abilities = frozenset((IMAGES,))

    def __init__(self, source: str, options: EncodeOptions) -> None:
        match = _SOURCE.fullmatch(source)
        assert match is not None
        self.side = None if match["side"] is None else int(match["side"])
        if self.side == 0:
            raise UsageError(f"grid:{source}: a grid of 0 × 0", fix="write the side of the grid after #, such as #3")
        super().__init__("grid", match["path"], options, "grid features", "AutoModel", texts=False)
        if self.side is not None:
            self.name += f"#{self.side}"
        self.tower = getattr(self.model, "vision_model", self.model)
        settings = json.loads(self._prepare.to_json_string())
        self.preprocessing = json.dumps({"images": settings, "side": self.side}, sort_keys=True, default=str)

    def encode_images(self, images: Sequence[Any]) -> Array:
        """n pictures → n × cells × dimension."""
        pixels = self._pixels(as_pictures(images))
        with self._compute.torch.inference_mode():
            states = self.tower(**pixels).last_hidden_state
            grid = patch_grid(states, patch_counts(self.model, pixels["pixel_values"]))
            if self.side is not None:
                grid = self._compute.torch.nn.functional.adaptive_avg_pool2d(grid, self.side)
            return self._compute.numpy(grid.flatten(2).transpose(1, 2))


def patch_counts(model: Any, pixels: Any) -> tuple[int, int]:
    """Rows and columns of patches that a model cuts pictures into; 0 where its settings do not say."""
    size = getattr(getattr(model, "vision_model", model).config, "patch_size", None)
    if size is None:
        return 0, 0
    height, width = (size, size) if isinstance(size, int) else size[-2:]
    return pixels.shape[-2] // height, pixels.shape[-1] // width


def patch_grid(states: Any, patches: tuple[int, int]) -> Any:
    """Last states of a vision model → n × dimension × rows × columns.

    Convolutional networks have a grid already. Of a sequence, the patches come last: class and register tokens stand
    before them. A model that merges patches on its way (Swin) ends with fewer, a square of them.
    """
    if states.ndim == 4:
        return states
    rows, columns = patches
    count = states.shape[1]
    if not rows or count < rows * columns:
        rows = columns = math.isqrt(count)
    if rows * columns == 0 or (count < patches[0] * patches[1] and rows * columns != count):
        raise UsageError(
            f"the model ends with {count} vectors per picture, which are no grid",
            fix="use a model whose last layer has a vector per patch",
        )
    return states[:, count - rows * columns :].transpose(1, 2).reshape(len(states), -1, rows, columns)


_OWNER = "sentence-transformers"


def hub_name(source: str) -> str:
    """Where a sentence encoder is looked for: a bare name is one of the library's own models."""
    return source if "/" in source or is_local(source) else f"{_OWNER}/{source}"


_SENTENCE_NAMES = {
    r"sentence-transformers/.*|(?:all|paraphrase|multi-qa|msmarco|distiluse)-.*": r"sentence:\g<0>",
    r".*/.*(?:minilm|mpnet|sentence).*|.*/(?:bge|e5|gte)-.*": r"sentence:\g<0>",
}


@ENCODERS.register("sentence", example="all-MiniLM-L6-v2", extra="sentence", names=_SENTENCE_NAMES)
class SentenceEncoder(Encoder):
    """Sentence embeddings (SBERT), texts only: a name such as ``all-MiniLM-L6-v2``, ``owner/name``, or a folder."""

    abilities = frozenset((TEXTS,))

    def __new__(cls, source: str, options: EncodeOptions) -> Any:
        """What an installed package holds as ONNX is loaded from there: neither the library nor the hub is needed."""
        return packaged_sentence_encoder(hub_name(source), options) or super().__new__(cls)

    def __init__(self, source: str, options: EncodeOptions) -> None:
        self.name = name_of("sentence", source)
        needed = "sentence_transformers", "a sentence encoder", "sentence", "sentence-transformers"
        require_library(*needed)
        folder, self.revision = find_model(hub_name(source), options)
        refuse_own_modules(folder)
        compute = Compute(options, "a sentence encoder")
        self.device = compute.device
        library = import_library(*needed)
        with loading(folder):
            self.model = library.SentenceTransformer(
                str(folder), device=str(compute.device), local_files_only=True, trust_remote_code=False
            )
            compute.prepared(self.model)
        # Renamed by the library: older versions know the second name only.
        get_dimension = getattr(self.model, "get_embedding_dimension", None)
        self.dimension = (get_dimension or self.model.get_sentence_embedding_dimension)()
        self.preprocessing = f"longest={self.model.max_seq_length}"

    def encode_texts(self, texts: Sequence[str]) -> Array:
        array: Array = self.model.encode(
            list(texts), batch_size=max(len(texts), 1), show_progress_bar=False, convert_to_numpy=True
        )
        return array

    def encode_words(self, texts: Sequence[str]) -> list[tuple[list[str], Array]]:
        """The words of each text, and their vectors: those of the model's last layer, before they are averaged."""
        vectors = self.model.encode(
            list(texts), batch_size=max(len(texts), 1), show_progress_bar=False, output_value="token_embeddings"
        )
        encodings = self.model.tokenizer(list(texts), truncation=True, max_length=self.model.max_seq_length).encodings
        return [
            word_vectors(encoding.word_ids, encoding.offsets, text, states[: len(encoding.ids)].float().cpu().numpy())
            for encoding, text, states in zip(encodings, texts, vectors, strict=True)
        ]


_OPEN_CLIP = r"(vit-\w+-\d\S*?|rn\d+\S*?|convnext_\S+?|eva\d+-\S+?|coca_\S+?)"
_OPEN_CLIP_NAMES = {
    r"(vit-\w+)/(\d+)": r"openclip:\1-\2/openai",  # as OpenAI's own package writes it
    rf"{_OPEN_CLIP}/[^/]+": r"openclip:\g<0>",
    _OPEN_CLIP: r"openclip:\g<0>/PRETRAINED, such as openclip:ViT-B-32/laion2b_s34b_b79k",
}


@ENCODERS.register(
    "openclip", example="ViT-B-32/laion2b_s34b_b79k", extra="openclip", path=r"[^/]*/(?P<path>.*)",
    names=_OPEN_CLIP_NAMES,
)  # fmt: skip
class OpenClipEncoder(Encoder):
    """open_clip models: ``architecture/pretrained``, where pretrained is one of its tags or the path of a file."""

    abilities = frozenset((IMAGES, TEXTS))

    def __init__(self, source: str, options: EncodeOptions) -> None:
        self.name = f"openclip:{source}"
        architecture, mark, pretrained = source.partition("/")
        if not (architecture and mark and pretrained):
            raise UsageError(f"{source!r} does not say which weights", fix="write openclip:ARCHITECTURE/PRETRAINED")
        self._compute = Compute(options, "an open_clip encoder")
        self.device = self._compute.device
        library = import_library("open_clip", "an open_clip encoder", "openclip", "open_clip_torch")
        if ":" in architecture:  # hf-hub: and local-dir: read a configuration that can name anything
            raise UsageError(
                f"{architecture!r} is not an architecture of open_clip", fix="name one that open_clip.list_models() has"
            )
        if not Path(pretrained).expanduser().is_file() and not is_offline():  # it fetches weights by itself
            options.notify(f"note: {self.name}: open_clip fetches the weights if they are not on this machine yet")
        try:
            weights = str(Path(pretrained).expanduser())
            model, _, transform = library.create_model_and_transforms(architecture, pretrained=weights)
        except Exception as error:  # its kinds range from the hub's to plain RuntimeError
            raise InputError(
                f"{self.name} cannot be loaded: {first_line(error)}",
                expected="an architecture and a tag that open_clip.list_pretrained() lists, or a weights file",
                fix=f"check the name; with {argument('offline', True)} the weights must be cached, or a file",
            ) from error
        # open_clip does not say where it took the weights from.
        digest = hashlib.blake2b(digest_size=16)
        for name, tensor in sorted(model.state_dict().items()):
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().data)
        self.revision = digest.hexdigest()
        self.model = self._compute.prepared(model)
        self._transform, self._tokenizer = transform, library.get_tokenizer(architecture)
        scale = getattr(model, "logit_scale", None)
        self.logit_scale = None if scale is None else float(scale.detach().float().exp())
        width = getattr(getattr(model, "visual", None), "output_dim", None)
        self.dimension = int(width) if isinstance(width, int) else None
        self.preprocessing = f"{architecture}: {transform!r}"

    def encode_images(self, images: Sequence[Any]) -> Array:
        stacked = self._compute.torch.stack([self._transform(picture) for picture in as_pictures(images)])
        with self._compute.torch.inference_mode():
            return self._compute.numpy(self.model.encode_image(self._compute.inputs({"pixels": stacked})["pixels"]))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        tokens = self._tokenizer(list(texts))
        with self._compute.torch.inference_mode():
            return self._compute.numpy(self.model.encode_text(self._compute.inputs({"tokens": tokens})["tokens"]))
