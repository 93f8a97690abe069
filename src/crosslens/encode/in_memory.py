"""Models that are in memory already: a torch module with its preprocessing, or a pair of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import isroutine
from types import SimpleNamespace
from typing import Any

from crosslens.core import UsageError, call_function
from crosslens.encode.batches import as_pictures
from crosslens.encode.encoder import IMAGES, METHODS, TEXTS, CallableEncoder, Encoder, as_array, no_encoder
from crosslens.encode.loading import longest_text, tokenized
from crosslens.storage import Array

_MODULE_METHODS = {IMAGES: ("encode_image", "get_image_features"), TEXTS: ("encode_text", "get_text_features")}
"""What open_clip's models and those of transformers call it."""


def encoder_of(model: Any, preprocess: Any = None, tokenizer: Any = None) -> Encoder:
    """An encoder of an object in memory.

    ``model`` is one of: an object with ``encode_images(pictures)`` or ``encode_texts(texts)``; a pair of functions that
    do that; a SentenceTransformer; a module of open_clip or transformers. The last two kinds need ``preprocess`` (a
    picture → a tensor, or an image processor of transformers) and ``tokenizer`` (texts → tokens); a processor that does
    both is given as ``preprocess``. A module is asked in evaluation mode and without gradients, where it is.
    """
    if any(callable(getattr(model, method, None)) for method in METHODS.values()):
        return model if isinstance(model, Encoder) else CallableEncoder(model)
    if isinstance(model, tuple) and len(model) == 2 and all(map(callable, model)):
        return CallableEncoder(SimpleNamespace(encode_images=model[0], encode_texts=model[1]), "functions")
    if callable(getattr(model, "encode", None)) and callable(getattr(model, "similarity", None)):

        def encode(items: list[Any]) -> Any:
            return model.encode(items, convert_to_numpy=True, show_progress_bar=False, batch_size=len(items))

        # A SentenceTransformer whose first module takes pictures, as CLIP's does, encodes both.
        modalities = getattr(model, "modalities", None) or ()
        takes_pictures = "image" in modalities or type(model[0]).__name__ == "CLIPModel"
        methods = METHODS.values() if takes_pictures else (METHODS[TEXTS],)
        return CallableEncoder(SimpleNamespace(**dict.fromkeys(methods, encode)), type(model).__name__)
    if any(callable(getattr(model, name, None)) for names in _MODULE_METHODS.values() for name in names):
        return CallableEncoder(_Module(model, preprocess, tokenizer), type(model).__name__)
    fix = "pass an object that has them, or a pair of functions: (pictures → vectors, texts → vectors)"
    if isroutine(model):
        raise UsageError(f"one function ({model.__name__}) cannot encode images and texts", fix=fix)
    raise no_encoder(model, [*METHODS.values(), *(name for names in _MODULE_METHODS.values() for name in names)], fix)


class _Module:
    """A torch module that encodes images and texts to vectors of one space."""

    def __init__(self, model: Any, preprocess: Any, tokenizer: Any) -> None:
        self._model = self.inspected = model
        self._preprocess = getattr(preprocess, "image_processor", preprocess)
        self._tokenizer: Any = tokenizer if tokenizer is not None else getattr(preprocess, "tokenizer", None)
        features = {
            kind: next((getattr(model, name) for name in names if hasattr(model, name)), None)
            for kind, names in _MODULE_METHODS.items()
        }
        for kind, tool, name in ((IMAGES, self._preprocess, "preprocess"), (TEXTS, self._tokenizer, "tokenizer")):
            if features[kind] is not None and tool is None:
                raise UsageError(
                    f"{type(model).__name__} without {name}", fix=f"pass {name}= as the model was trained with"
                )
        self._features = features
        # As the adapter of the same architecture prepares texts, and takes vectors from what the model returns.
        from crosslens.encode.adapters.torch_encoders import ARCHITECTURES, vectors_of

        config = getattr(model, "config", None)
        model_type = getattr(config, "model_type", None)
        self._architecture = next((entry for entry in ARCHITECTURES.values() if model_type in entry.types), None)
        self._vectors_of = vectors_of
        if hasattr(self._tokenizer, "model_max_length"):
            self._longest = longest_text(self._tokenizer, config, getattr(self._architecture, "longest", None))
        if features[IMAGES] is not None:
            self.encode_images = self._encode_images
        if features[TEXTS] is not None:
            self.encode_texts = self._encode_texts

    def _encode_images(self, images: Sequence[Any]) -> Array:
        import torch

        pictures = as_pictures(images)
        if hasattr(self._preprocess, "preprocess"):  # of transformers
            inputs: Any = dict(call_function(self._preprocess, images=pictures, return_tensors="pt"))
        else:
            inputs = torch.stack([call_function(self._preprocess, picture) for picture in pictures])
        return self._run(self._features[IMAGES], inputs)

    def _encode_texts(self, texts: Sequence[str]) -> Array:
        if hasattr(self._tokenizer, "model_max_length"):  # of transformers
            tokens: Any = call_function(
                tokenized, self._tokenizer, texts, self._longest, padding=getattr(self._architecture, "padding", True)
            )
        else:
            tokens = call_function(self._tokenizer, list(texts))
        return self._run(self._features[TEXTS], tokens)

    def _run(self, features: Any, inputs: Any) -> Array:
        import torch

        device = next((parameter.device for parameter in self._model.parameters()), torch.device("cpu"))
        with torch.inference_mode(), evaluating(self._model):
            if isinstance(inputs, Mapping):
                output = call_function(features, **{name: value.to(device) for name, value in inputs.items()})
            else:
                output = call_function(features, inputs.to(device))
        return as_array(self._vectors_of(output))


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation mode, and afterwards in the mode that it was in."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
