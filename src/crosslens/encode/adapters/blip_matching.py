"""BLIP as a fusion model: its matching head scores pairs of an image and a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.encode.adapters.transformers_dual import check_type, loading, longest_text, transformers_or_raise
from crosslens.encode.encoder import Array, name_of
from crosslens.encode.hub import find_model
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pair_scorers import PAIR_SCORERS, PairScorer
from crosslens.encode.torch_model import Compute


@PAIR_SCORERS.register("blip", example="Salesforce/blip-itm-base-coco", extra="encoders")
def load_blip(source: str, options: EncodeOptions) -> PairScorer:
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""
    return BlipMatcher(source, options)


class BlipMatcher:
    """BLIP's text encoder reads the text while it looks at the image."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        self.name = name_of("blip", source)
        self._compute = Compute(options, "a pair scorer")
        self.device = self._compute.device
        library = transformers_or_raise("a pair scorer")
        location = find_model(source, options)
        self.revision = location.revision
        check_type(location.folder, ("blip",), "blip")
        with loading(location.folder):
            model = library.BlipForImageTextRetrieval.from_pretrained(location.folder, local_files_only=True)
            self.model = self._compute.moved(model)
            self._prepare = library.AutoImageProcessor.from_pretrained(
                location.folder, local_files_only=True, backend="pil"
            )
            self._tokenizer = library.AutoTokenizer.from_pretrained(location.folder, local_files_only=True)
        self._longest = longest_text(self._tokenizer, self.model.config)

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """Logit of "matches" minus logit of "does not"; an image that occurs again is looked at once."""
        keys = [str(image) if isinstance(image, str | Path) else id(image) for image in images]
        distinct = list(dict(zip(keys, images, strict=True)).items())
        row_of = {key: row for row, (key, _) in enumerate(distinct)}
        pixels = self._prepare(images=as_pictures([image for _, image in distinct]), return_tensors="pt")
        words = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
        )
        text_inputs = self._compute.inputs({name: words[name] for name in ("input_ids", "attention_mask")})
        with self._compute.torch.inference_mode():
            image_states = self.model.vision_model(**self._compute.inputs(dict(pixels))).last_hidden_state
            image_states = image_states[[row_of[key] for key in keys]]
            mask = image_states.new_ones(image_states.shape[:2]).long()
            outputs = self.model.text_encoder(
                **text_inputs, encoder_hidden_states=image_states, encoder_attention_mask=mask
            )
            logits = self.model.itm_head(outputs.last_hidden_state[:, 0])
            return self._compute.numpy(logits[:, 1] - logits[:, 0])
