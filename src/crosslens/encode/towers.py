"""Pretrained models opened up: their tokens, pixels and torch module, to train them further or to use their states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosslens.core import UsageError
from crosslens.encode.adapters.torch_encoders import ARCHITECTURES, Architecture, hub_name, patch_counts, vectors_of
from crosslens.encode.batches import as_picture, as_pictures, file_key, read_ahead
from crosslens.encode.encoder import ENCODERS, is_local, require_library
from crosslens.encode.loading import check_type, find_model, load_part, longest_text, model_type_of, tokenized
from crosslens.encode.options import EncodeOptions
from crosslens.engine import Progress, shown_progress, stage
from crosslens.storage import (
    Array,
    cache_folder,
    fingerprint,
    mapped_array,
    open_array,
    read_cached_array,
    write_cached_array,
)

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
        lasting = str(self.folder.expanduser().resolve()) if is_local(source) else source
        self.model = f"{kind}:{lasting}" if kind else lasting
        """Its name from any working folder."""
        if kind in ARCHITECTURES:
            check_type(self.folder, ARCHITECTURES[kind].types, kind)
            self.architecture = ARCHITECTURES[kind]
        else:  # as the kind of its type is loaded and asked
            model_type = model_type_of(self.folder)
            fitting = (entry for entry in ARCHITECTURES.values() if model_type in entry.types)
            self.architecture = next(fitting, Architecture(kind or model_type, (model_type,)))

    def module(self) -> Any:
        """The torch module in 32 bits on the CPU, in evaluation mode; loaded anew at every call."""
        return load_part(self.folder, _PURPOSE, self.architecture.model_class).float().eval()

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
        inputs = {"input_ids": tokens} if mask is None else {"input_ids": tokens, "attention_mask": mask}
        assert self.architecture.texts is not None
        output = self.architecture.texts(module, inputs)
        return PretrainedOutput(vectors_of(output), getattr(output, "last_hidden_state", None))

    def tokens(self, texts: Sequence[str]) -> TokenArrays:
        """Texts as the model reads them; longer ones are cut, as the library does."""
        tokenizer, longest = self._tokenizer
        tokens = tokenized(tokenizer, texts, longest, self.architecture.padding, "np")
        ids, mask = np.asarray(tokens["input_ids"], np.int64), tokens.get("attention_mask")
        if mask is None or self.architecture.padding is not True:
            return TokenArrays(ids, mask, np.full(len(ids), ids.shape[1], np.int64))
        return TokenArrays(ids, np.asarray(mask, np.int64), np.asarray(mask.sum(axis=1), np.int64))

    @cached_property
    def _tokenizer(self) -> tuple[Any, int | None]:
        """The tokenizer, and how many tokens a text may have."""
        config, tokenizer = (load_part(self.folder, _PURPOSE, kind) for kind in ("AutoConfig", "AutoTokenizer"))
        return tokenizer, longest_text(tokenizer, config, self.architecture.longest)

    @cached_property
    def _prepare(self) -> Any:
        return load_part(self.folder, _PURPOSE, "AutoImageProcessor", backend="pil")

    @property
    def preprocessing(self) -> str:
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


_PICTURES = 32
"""How many are prepared at once."""


@dataclass(frozen=True)
class PixelRows:
    """Pixels of images, in an array that stays on disk; a selection of rows is read when it is asked for."""

    path: Path
    """An array of images × channels × height × width, as half-precision numbers."""
    rows: Array
    model: str
    """The model whose image processor made them."""
    key: str
    """A hash of pictures and processing: what stands for the array where results are compared."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Array | slice) -> PixelRows:
        return PixelRows(self.path, self.rows[rows], self.model, self.key)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *open_array(self.path).shape[1:])

    def read(self) -> Array:
        """The rows, as 32-bit numbers."""
        return np.asarray(open_array(self.path)[self.rows], np.float32)


def stored_pixels(
    pretrained: Pretrained, files: Sequence[str], *, cache: str | Path | None = None, progress: Progress | None = None
) -> PixelRows:
    """The pixels of image files by a model's own image processor, from the cache or computed and put there."""
    hashes = [key.hex() for key in read_ahead(file_key, files)]
    key = fingerprint("pixels", {"images": hashes, "preprocessing": pretrained.preprocessing})
    path = cache_folder(cache) / "pixels" / f"{key}.npy"
    if read_cached_array(path, (len(files), None, None, None), np.float16) is None:
        write_cached_array(path, lambda partial: _write(partial, pretrained, files, shown_progress(progress)))
    return PixelRows(path, np.arange(len(files)), pretrained.model, key)


def _write(path: Path, pretrained: Pretrained, files: Sequence[str], progress: Progress) -> None:
    array: Any = None
    start = 0
    with stage(progress, "preparing pictures", len(files)):
        decoded = read_ahead(as_picture, files)
        while pictures := list(islice(decoded, _PICTURES)):
            pixels = pretrained.pixels(pictures)
            if array is None:
                shape = (len(files), *pixels.shape[1:])
                array = mapped_array(path, np.float16, shape)
            array[start : start + len(pixels)] = pixels
            start += len(pixels)
            progress.advance(len(pixels))
        array.flush()
