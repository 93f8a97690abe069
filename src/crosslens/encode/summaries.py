"""Several sentences about one image made into one: by choosing, or by a model that writes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from crosslens.core import Registry
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import PretrainedModel, ids_and_mask

_BATCH, _LONGEST = 16, 64  # texts written at once, and the tokens of each


class Summariser(Protocol):
    """Makes one text of each group of sentences."""

    name: str
    revision: str

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """One summary per group."""


SUMMARISERS: Registry[Callable[[str, EncodeOptions], Summariser]] = Registry("summariser", "summarisers")


def load_summariser(name: str, options: EncodeOptions | None = None) -> Summariser:
    """The summariser that ``extractive``, ``extractive:2`` or ``transformers:google/pegasus-xsum`` stands for."""
    kind, _, source = name.partition(":")
    return SUMMARISERS[kind].value(source, options or EncodeOptions())


@SUMMARISERS.register("extractive")
def load_extractive(source: str, options: EncodeOptions) -> Summariser:
    """The most central sentence, or with ``extractive:2`` the two most central ones, unchanged."""
    return Extractive(int(source) if source.isdigit() and int(source) else 1)


class Extractive:
    """Chooses the sentences that share most with the others: highest mean cosine of their TF-IDF vectors.

    Words are counted within the group only, so the choice does not depend on other images; of equals the earlier one.
    """

    revision = "1"

    def __init__(self, sentences: int = 1) -> None:
        self.sentences = sentences
        self.name = f"extractive:{sentences}"

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """The chosen sentences of each group, in their own order."""
        return [self._choose(list(group)) for group in groups]

    def _choose(self, group: list[str]) -> str:
        if len(group) <= self.sentences:
            return " ".join(group)
        bags = [Counter(re.findall(r"\w+", sentence.casefold())) for sentence in group]
        spread = Counter(word for bag in bags for word in bag)
        weights = [
            {word: count * math.log(1 + len(group) / spread[word]) for word, count in bag.items()} for bag in bags
        ]
        central = [sum(_cosine(vector, other) for other in weights if other is not vector) for vector in weights]
        by_centrality = sorted(range(len(group)), key=lambda row: (-round(central[row], 12), row))
        return " ".join(group[row] for row in sorted(by_centrality[: self.sentences]))


@SUMMARISERS.register("transformers")
class Abstractive(PretrainedModel):
    """A text-to-text model of the transformers library, such as T5 or PEGASUS, by hub name or path.

    It writes greedily: the same sentences give the same summary.
    """

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("transformers", source, options, "a summariser", "AutoModelForSeq2SeqLM", images=False)
        # T5 is told in words what to do; the others know only one thing.
        self._prompt = "summarize: " if self.model.config.model_type in ("t5", "mt5", "longt5") else ""

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """One written summary per group."""
        texts = [self._prompt + " ".join(group) for group in groups]
        written: list[str] = []
        for start in range(0, len(texts), _BATCH):
            written += self._write(texts[start : start + _BATCH])
        return written

    def _write(self, texts: list[str]) -> list[str]:
        text_inputs = ids_and_mask(self._tokens(texts))
        with self._compute.torch.inference_mode():
            tokens = self.model.generate(**text_inputs, do_sample=False, num_beams=1, max_new_tokens=_LONGEST)
        return [text.strip() for text in self._tokenizer.batch_decode(tokens, skip_special_tokens=True)]


def _cosine(left: dict[str, float], other: dict[str, float]) -> float:
    shared = sum(weight * other[word] for word, weight in left.items() if word in other)
    lengths = math.sqrt(sum(w * w for w in left.values()) * sum(w * w for w in other.values()))
    return shared / lengths if lengths else 0.0
