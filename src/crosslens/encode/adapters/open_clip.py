"""Models of the open_clip library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.core import InputError, UsageError, argument
from crosslens.encode.encoder import ENCODERS, IMAGES, TEXTS, Array, import_library
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import Compute, weights_revision


@ENCODERS.register("openclip", example="ViT-B-32/laion2b_s34b_b79k", extra="openclip", path=r"[^/]*/(?P<path>.*)")
class OpenClipEncoder:
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
        if not Path(pretrained).expanduser().is_file():
            _prepare_network(self.name, options)
        try:
            weights = str(Path(pretrained).expanduser())
            model, _, transform = library.create_model_and_transforms(architecture, pretrained=weights)
        except Exception as error:  # its kinds range from the hub's to plain RuntimeError
            text = str(error).strip().splitlines()
            raise InputError(
                f"{self.name} cannot be loaded: {text[0] if text else type(error).__name__}",
                expected="an architecture and a tag that open_clip.list_pretrained() lists, or a weights file",
                fix=f"check the name; with {argument('offline', True)} the weights must be cached, or a file",
            ) from error
        self.revision = weights_revision(model)
        self.model = self._compute.moved(model)
        self._transform, self._tokenizer = transform, library.get_tokenizer(architecture)
        scale = getattr(model, "logit_scale", None)
        self.logit_scale = None if scale is None else float(scale.detach().float().exp())
        width = getattr(getattr(model, "visual", None), "output_dim", None)
        self.dimension = int(width) if isinstance(width, int) else None
        self.preprocessing = f"{architecture}: {transform!r}"

    def encode_images(self, images: Sequence[Any]) -> Array:
        """The model's image features, not normalised."""
        stacked = self._compute.torch.stack([self._transform(picture) for picture in as_pictures(images)])
        with self._compute.torch.inference_mode():
            return self._compute.numpy(self.model.encode_image(self._compute.inputs({"pixels": stacked})["pixels"]))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The model's text features, not normalised."""
        tokens = self._tokenizer(list(texts))
        with self._compute.torch.inference_mode():
            return self._compute.numpy(self.model.encode_text(self._compute.inputs({"tokens": tokens})["tokens"]))


def _prepare_network(name: str, options: EncodeOptions) -> None:
    """open_clip fetches weights by itself: forbid that, or say that it may happen."""
    if options.offline:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import huggingface_hub

        huggingface_hub.constants.HF_HUB_OFFLINE = True  # read from the environment on import, which was earlier
    else:
        options.notify(f"note: {name}: open_clip fetches the weights if they are not on this machine yet")
