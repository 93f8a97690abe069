"""BLIP as a fusion model: its matching head scores pairs of an image and a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.encode.encoder import Array
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pair_scorers import PAIR_SCORERS
from crosslens.encode.torch_model import PretrainedModel, ids_and_mask


@PAIR_SCORERS.register("blip", example="Salesforce/blip-itm-base-coco", extra="encoders")
class BlipMatcher(PretrainedModel):
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("blip", source, options, "a pair scorer", "BlipForImageTextRetrieval", types=("blip",))

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """Logit of "matches" minus logit of "does not"; an image that occurs again is looked at once."""
        keys = [str(image) if isinstance(image, str | Path) else id(image) for image in images]
        distinct = list(dict(zip(keys, images, strict=True)).items())
        row_of = {key: row for row, (key, _) in enumerate(distinct)}
        pixels = self._pixels(as_pictures([image for _, image in distinct]))
        text_inputs = ids_and_mask(self._tokens(texts))
        with self._compute.torch.inference_mode():
            image_states = self.model.vision_model(**pixels).last_hidden_state
            image_states = image_states[[row_of[key] for key in keys]]
            mask = image_states.new_ones(image_states.shape[:2]).long()
            outputs = self.model.text_encoder(
                **text_inputs, encoder_hidden_states=image_states, encoder_attention_mask=mask
            )
            logits = self.model.itm_head(outputs.last_hidden_state[:, 0])
            return self._compute.numpy(logits[:, 1] - logits[:, 0])
