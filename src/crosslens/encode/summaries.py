"""Several sentences about one image made into one: by choosing, or by a model that writes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from crosslens.core import Registry
from crosslens.encode.adapters.transformers_dual import loading, longest_text, transformers_or_raise
from crosslens.encode.encoder import name_of
from crosslens.encode.hub import find_model
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import Compute


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


@SUMMARISERS.register("transformers")
def load_abstractive(source: str, options: EncodeOptions) -> Summariser:
    """A text-to-text model of the transformers library, such as T5 or PEGASUS, by hub name or path."""
    return Abstractive(source, options)


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
        best = sorted(range(len(group)), key=lambda location: (-round(central[location], 12), location))[
            : self.sentences
        ]
        return " ".join(group[location] for location in sorted(best))


class Abstractive:
    """Writes a summary with a text-to-text model, greedily: the same sentences give the same summary."""

    def __init__(self, source: str, options: EncodeOptions, batch: int = 16, longest: int = 64) -> None:
        self.name = name_of("transformers", source)
        self._compute = Compute(options, "a summariser")
        library = transformers_or_raise("a summariser")
        location = find_model(source, options)
        self.revision = location.revision
        self._batch, self._longest = batch, longest
        with loading(location.folder):
            model = library.AutoModelForSeq2SeqLM.from_pretrained(location.folder, local_files_only=True)
            self.model = self._compute.moved(model)
            self._tokenizer = library.AutoTokenizer.from_pretrained(location.folder, local_files_only=True)
        # T5 is told in words what to do; the others know only one thing.
        self._prompt = "summarize: " if self.model.config.model_type in ("t5", "mt5", "longt5") else ""

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """One written summary per group."""
        texts = [self._prompt + " ".join(group) for group in groups]
        written: list[str] = []
        for start in range(0, len(texts), self._batch):
            written += self._write(texts[start : start + self._batch])
        return written

    def _write(self, texts: list[str]) -> list[str]:
        limit = longest_text(self._tokenizer, self.model.config)
        tokens_in: Any = self._tokenizer(
            texts, padding=True, truncation=limit is not None, max_length=limit, return_tensors="pt"
        )
        text_inputs = {name: tokens_in[name] for name in ("input_ids", "attention_mask")}
        with self._compute.torch.inference_mode():
            tokens = self.model.generate(
                **self._compute.inputs(text_inputs), do_sample=False, num_beams=1, max_new_tokens=self._longest
            )
        return [text.strip() for text in self._tokenizer.batch_decode(tokens, skip_special_tokens=True)]


def _cosine(left: dict[str, float], other: dict[str, float]) -> float:
    shared = sum(weight * other[word] for word, weight in left.items() if word in other)
    lengths = math.sqrt(sum(w * w for w in left.values()) * sum(w * w for w in other.values()))
    return shared / lengths if lengths else 0.0
