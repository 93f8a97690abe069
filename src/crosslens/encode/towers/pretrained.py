"""A pretrained model in parts: the tokens it reads, the pixels it sees, and its torch module, to be trained further."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import UsageError
from crosslens.encode.adapters.sentence import hub_name
from crosslens.encode.adapters.transformers_dual import ARCHITECTURES, Architecture, vectors_of
from crosslens.encode.adapters.vision_grid import patch_counts
from crosslens.encode.encoder import ENCODERS, Array, import_library, is_local, require_library
from crosslens.encode.hub import find_model
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import SAFE, check_type, loading, longest_text, model_type_of

_PURPOSE = "adapting a pretrained model"
_SENTENCE = "sentence"


class TokenArrays(NamedTuple):
    """Texts as a model reads them: numbers of tokens (n×longest), which of them count, and how many to keep of each."""

    ids: Array
    mask: Array | None
    """None where the model was trained without one."""
    lengths: Array
    """Tokens behind these only fill up; where a model wants them all, this is the full length."""


class PretrainedOutput(NamedTuple):
    """What a model makes of items: torch tensors."""

    vectors: Any
    """One per item, in the common space."""
    states: Any
    """Of the last layer of its tower: n × patches (or tokens) × d; None for a model that does not return them."""


class Pretrained:
    """A model of the transformers library on this disk: ``KIND:SOURCE``, or the path or hub name alone."""

    def __init__(self, model: str, options: EncodeOptions | None = None) -> None:
        for package in ("torch", "transformers"):
            require_library(package, _PURPOSE)
        kind, colon, source = model.partition(":")
        if not colon or kind not in ENCODERS:
            kind, source = "", model
        source = hub_name(source) if kind == _SENTENCE else source
        self.folder, self.revision = find_model(source, options or EncodeOptions())
        self.model = f"{kind}:{self._lasting(source)}" if kind else self._lasting(source)
        """The same model from any working folder."""
        self.architecture = _architecture(self.folder, kind)

    def _lasting(self, source: str) -> str:
        return str(self.folder.expanduser().resolve()) if is_local(source) else source

    def module(self) -> Any:
        """The torch module in 32 bits on the CPU, in evaluation mode; loaded anew at every call."""
        library = import_library("transformers", _PURPOSE)
        with loading(self.folder):
            model_class = getattr(library, self.architecture.model_class)
            return model_class.from_pretrained(self.folder, **SAFE).float().eval()

    def read_images(self, module: Any, pixels: Any) -> PretrainedOutput:
        """What the module makes of pixels; patches come last among the states, behind tokens of the whole picture."""
        output = self.architecture.images(module, {"pixel_values": pixels})
        states = getattr(output, "last_hidden_state", None)
        if states is not None and states.ndim == 4:  # of a convolutional network
            states = states.flatten(2).transpose(1, 2)
        elif states is not None:
            states = states[:, -math.prod(patch_counts(module, pixels)) :]
        return PretrainedOutput(vectors_of(output), states)

    def read_texts(self, module: Any, tokens: Any, mask: Any | None) -> PretrainedOutput:
        """What the module makes of tokens."""
        inputs = {"input_ids": tokens} if mask is None else {"input_ids": tokens, "attention_mask": mask}
        assert self.architecture.texts is not None
        output = self.architecture.texts(module, inputs)
        return PretrainedOutput(vectors_of(output), getattr(output, "last_hidden_state", None))

    def tokens(self, texts: Sequence[str]) -> TokenArrays:
        """Texts as the model reads them; longer ones are cut, as the library does."""
        tokenizer, longest = self._tokenizer
        tokens = tokenizer(
            list(texts), padding=self.architecture.padding, truncation=longest is not None, max_length=longest,
            return_tensors="np",
        )  # fmt: skip
        ids, mask = np.asarray(tokens["input_ids"], np.int64), tokens.get("attention_mask")
        if mask is None or self.architecture.padding is not True:
            return TokenArrays(ids, mask, np.full(len(ids), ids.shape[1], np.int64))
        return TokenArrays(ids, np.asarray(mask, np.int64), np.asarray(mask.sum(axis=1), np.int64))

    @cached_property
    def _tokenizer(self) -> tuple[Any, int | None]:
        """It, and how many tokens a text may have."""
        library = import_library("transformers", _PURPOSE)
        with loading(self.folder):
            config = library.AutoConfig.from_pretrained(self.folder, **SAFE)
            tokenizer = library.AutoTokenizer.from_pretrained(self.folder, **SAFE)
        own_limit = getattr(config, "max_position_embeddings", None)
        return tokenizer, longest_text(tokenizer, config, self.architecture.longest or own_limit)

    @cached_property
    def _prepare(self) -> Any:
        library = import_library("transformers", _PURPOSE)
        with loading(self.folder):
            return library.AutoImageProcessor.from_pretrained(self.folder, **SAFE, backend="pil")

    @property
    def preprocessing(self) -> str:
        """The settings by which pictures become pixels."""
        return str(self._prepare.to_json_string())

    def pixels(self, pictures: Sequence[Any]) -> Array:
        """Pictures, or paths of them → n×channels×height×width, by the model's own image processor."""
        pixels: Array = self._prepare(images=as_pictures(pictures), return_tensors="np")["pixel_values"]
        if pixels.ndim != 4:
            raise UsageError(
                f"the image processor of {self.folder} gives an array of shape {pixels.shape[1:]} per picture",
                fix="use a model that takes channels × height × width",
            )
        return pixels


def _architecture(folder: Path, kind: str) -> Architecture:
    """How a folder's model is loaded and asked: as its kind says, or as the kind of its type does."""
    if kind in ARCHITECTURES:
        check_type(folder, ARCHITECTURES[kind].types, kind)
        return ARCHITECTURES[kind]
    model_type = model_type_of(folder)
    fitting = (known for known in ARCHITECTURES.values() if model_type in known.types)
    return next(fitting, Architecture(kind or model_type, (model_type,)))
