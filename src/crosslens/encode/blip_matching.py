"""BLIP as a fusion model: its matching head scores pairs of an image and a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosslens.encode.encoder import Array, Settings, name_of
from crosslens.encode.hub import find_model
from crosslens.encode.pairs import PAIR_SCORERS, PairScorer
from crosslens.encode.pictures import as_pictures
from crosslens.encode.torch_model import Compute
from crosslens.encode.transformers_dual import check_type, loading, longest_text, transformers_or_raise


@PAIR_SCORERS.register("blip", example="Salesforce/blip-itm-base-coco", extra="encoders")
def load_blip(source: str, settings: Settings) -> PairScorer:
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""
    return BlipMatcher(source, settings)


class BlipMatcher:
    """BLIP's text encoder reads the text while it looks at the image."""

    def __init__(self, source: str, settings: Settings) -> None:
        self.name = name_of("blip", source)
        self._compute = Compute(settings, "a pair scorer")
        library = transformers_or_raise("a pair scorer")
        place = find_model(source, settings)
        self.revision = place.revision
        check_type(place.folder, ("blip",), "blip")
        with loading(place.folder):
            model = library.BlipForImageTextRetrieval.from_pretrained(place.folder, local_files_only=True)
            self.model = self._compute.moved(model)
            self._prepare = library.AutoImageProcessor.from_pretrained(
                place.folder, local_files_only=True, backend="pil"
            )
            self._tokenizer = library.AutoTokenizer.from_pretrained(place.folder, local_files_only=True)
        self._longest = longest_text(self._tokenizer, self.model.config)

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """Logit of "matches" minus logit of "does not"; an image that occurs again is looked at once."""
        keys = [str(one) if isinstance(one, str | Path) else id(one) for one in images]
        distinct = list(dict(zip(keys, images, strict=True)).items())
        row_of = {key: row for row, (key, _) in enumerate(distinct)}
        pixels = self._prepare(images=as_pictures([image for _, image in distinct]), return_tensors="pt")
        words = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
        )
        taken = self._compute.inputs({name: words[name] for name in ("input_ids", "attention_mask")})
        with self._compute.torch.inference_mode():
            seen = self.model.vision_model(**self._compute.inputs(dict(pixels))).last_hidden_state
            seen = seen[[row_of[key] for key in keys]]
            mask = seen.new_ones(seen.shape[:2]).long()
            read = self.model.text_encoder(**taken, encoder_hidden_states=seen, encoder_attention_mask=mask)
            logits = self.model.itm_head(read.last_hidden_state[:, 0])
            return self._compute.numpy(logits[:, 1] - logits[:, 0])
