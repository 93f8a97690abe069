"""The tokenizer of ``tiny``: byte pairs learnt from the captions of the corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from towers import LONGEST

VOCABULARY = 3072


def learn(captions: Iterable[str]) -> Any:
    """A tokenizer; the same captions give the same."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="[unknown]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["[none]", "[unknown]"], min_frequency=20, show_progress=False
    )
    tokenizer.train_from_iterator(captions, trainer)
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding(pad_id=0, pad_token="[none]")
    return tokenizer
