"""BLIP and BLIP-2 as fusion models: their matching heads score pairs of an image and a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.encode.encoder import Array
from crosslens.encode.images import as_pictures
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pairs.scorers import PAIR_SCORERS
from crosslens.encode.torch_model import PretrainedModel, ids_and_mask


class _Matcher(PretrainedModel):
    """A model of the transformers library with an image tower and a head that says whether a text matches."""

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
            seen = {"encoder_hidden_states": image_states, "encoder_attention_mask": mask}
            logits = self._logits(text_inputs, seen)
            return self._compute.numpy(logits[:, 1] - logits[:, 0])

    @abstractmethod
    def _logits(self, text_inputs: dict[str, Any], seen: dict[str, Any]) -> Any:
        """Two logits per pair: that the text does not match, and that it does."""


@PAIR_SCORERS.register("blip", example="Salesforce/blip-itm-base-coco", extra="encoders")
class BlipMatcher(_Matcher):
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("blip", source, options, "a pair scorer", "BlipForImageTextRetrieval", types=("blip",))

    def _logits(self, text_inputs: dict[str, Any], seen: dict[str, Any]) -> Any:
        return self.model.itm_head(self.model.text_encoder(**text_inputs, **seen).last_hidden_state[:, 0])


@PAIR_SCORERS.register("blip2", example="Salesforce/blip2-itm-vit-g", extra="encoders")
class Blip2Matcher(_Matcher):
    """BLIP-2's matching head (ITM): the log-odds that the text describes the image, a mean over the query tokens."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("blip2", source, options, "a pair scorer", "Blip2ForImageTextRetrieval", types=("blip-2",))

    def _logits(self, text_inputs: dict[str, Any], seen: dict[str, Any]) -> Any:
        mask = text_inputs["attention_mask"]
        queries = self.model.query_tokens.expand(len(mask), -1, -1)
        count = queries.shape[1]
        outputs = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=text_inputs["input_ids"], query_embeds=queries),
            query_length=count,
            attention_mask=self._compute.torch.cat([mask.new_ones(len(mask), count), mask], dim=1),
            **seen,
        )
        head = self.model.itm_head
        return head(outputs.last_hidden_state[:, :count].to(head.weight.dtype)).mean(dim=1)
