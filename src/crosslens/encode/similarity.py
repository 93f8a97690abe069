"""``embed`` and ``embed-max``: any text encoder as φ. Registered from here, for encoders stand above similarities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crosslens.core import CrosslensError, MissingExtraError, UsageError, available_cores
from crosslens.encode.adapters.onnx import token_counts
from crosslens.encode.batches import Batches
from crosslens.encode.cache import Cache
from crosslens.encode.encoder import (
    TEXTS,
    Encoder,
    import_library,
    load_encoder,
    name_of,
    note_origin,
    require_library,
    require_modality,
)
from crosslens.encode.loading import PACKAGED_MODELS, Compute, folder_revision, load_part, package_folder
from crosslens.encode.options import EncodeOptions
from crosslens.encode.stream import encode_texts
from crosslens.engine import Progress, shown_progress, stage
from crosslens.similarity import (
    SIMILARITIES,
    CacheChoice,
    EmbeddingSimilarity,
    Semantic,
    Similarity,
    StoredEmbeddingSimilarity,
    TextEncoder,
    WordVectors,
    load_semantic_fit,
    packaged_semantic_fits,
    semantic_fits,
)
from crosslens.storage import Array, read_json_file

MINILM, PARAPHRASE = "all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2"
BOTH = f"{MINILM}+{PARAPHRASE}"
"""The fit of the default: both encoders."""

_STORED = "vectors:"
_INSTALL = "pip install 'crosslens[semantic]'"
_MINILM_PACKAGE = PACKAGED_MODELS[f"sentence-transformers/{MINILM}"]


@SIMILARITIES.register("semantic", example="semantic:sentence:all-MiniLM-L6-v2", extra="semantic")
def load_semantic(
    source: str = "",
    *,
    fit: str | Path = "",
    device: str | None = None,
    offline: bool = False,
    cache: CacheChoice = True,
) -> Similarity:
    """How well people would say the caption describes the image: sentence vectors, shared words and roles, 0 to 1.

    source: the sentence encoder, as `KIND:SOURCE`; by default all-MiniLM-L6-v2 and paraphrase-MiniLM-L3-v2 together
    fit: a fit that comes with crosslens, by name, or a JSON file; by default the one that belongs to the encoder
    device: where the encoder computes; by default a GPU if there is one
    offline: never use the network
    cache: keep vectors between runs; or the folder to keep them in
    """
    options = EncodeOptions(device=device, offline=offline)
    # The two known encoders are looked for among the installed packages first.
    loaders: dict[str, Callable[[EncodeOptions], Encoder]] = {
        f"sentence:{MINILM}": _minilm,
        f"sentence:{PARAPHRASE}": partial(_loaded, f"sentence:{PARAPHRASE}"),
    }
    if not source:
        models, fit, name = [load(options) for load in loaders.values()], fit or BOTH, "semantic"
    else:
        model = loaders[source](options) if source in loaders else load_encoder(source, device=device, offline=offline)
        require_modality(model, TEXTS)
        # The fit that was made with this encoder, known by its name, or by being the same files.
        fits = [
            known_name
            for known_name, revision in packaged_semantic_fits()["encoders"].items()
            if model.revision == revision or model.name.endswith(known_name) or source.rstrip("/").endswith(known_name)
        ]
        if not fit and not fits:
            raise UsageError(
                f"semantic has no fit for {model.name}: its cosines have a scale of their own",
                fix=f"fit it to judged pairs (training/semantic/fit.py) and pass fit=FILE.json; or pass fit= one of "
                f"{', '.join(semantic_fits())} if the model is that one under another name",
            )
        models, fit, name = [model], fit or fits[0], f"semantic:{model.name}"
    vector_cache = Cache.of(cache)
    encoders = [TextEncoder(model.name, model.revision, _vectors_of(model, vector_cache)) for model in models]
    return Semantic(encoders, load_semantic_fit(fit), name=name)


def _vectors_of(model: Encoder, cache: Cache | None) -> Callable[[Sequence[str], Progress | None], Array]:
    return lambda texts, progress: encode_texts(model, texts, cache=cache, progress=progress).rows


def word_encoder(model: Encoder) -> WordVectors | None:
    """Vectors of words, in batches of similar lengths; not cached, for they take ten times the room of the texts'."""
    encode_words = getattr(model, "encode_words", None)
    if encode_words is None or not getattr(model, "gives_words", True):
        return None

    def words(texts: Sequence[str], progress: Progress | None) -> list[tuple[list[str], Array]]:
        order = sorted(range(len(texts)), key=lambda row: (len(texts[row]), row))
        encoded: list[tuple[list[str], Array]] = [([], np.zeros((0, 0), np.float32))] * len(texts)
        with stage(shown_progress(progress), "encoding words", len(texts)) as running:
            for rows in Batches(TEXTS, model).of(order):
                for row, of_text in zip(rows, encode_words([texts[row] for row in rows]), strict=True):
                    encoded[row] = of_text
                running.advance(len(rows))
        return encoded

    return words


def _minilm(options: EncodeOptions) -> Encoder:
    folder = package_folder(_MINILM_PACKAGE)
    return _packaged_minilm(folder / "model", options) if folder else _loaded(f"sentence:{MINILM}", options)


class _PackagedMiniLM(Encoder):
    """all-MiniLM-L6-v2 from its package: the vectors of sentence-transformers, which takes longer to import."""

    abilities = frozenset((TEXTS,))
    dimension = 384

    def __init__(self, folder: Path, options: EncodeOptions) -> None:
        for library in ("torch", "transformers", "tokenizers"):
            require_library(library, "semantic", "semantic")
        self._options, self._folder = options, folder
        self.name, self.revision = name_of("sentence", str(folder)), folder_revision(folder)
        self._longest = read_json_file(folder / "sentence_bert_config.json")["max_seq_length"]
        self.preprocessing = f"longest={self._longest}"  # as the library's encoder says: they share what is cached
        note_origin(self, f"sentence:{folder}", options)

    @cached_property
    def _model(self) -> tuple[Compute, Any, Any]:
        """Loaded when there is a text to encode; its tokenizer is one that several threads may use."""
        compute = Compute(self._options, "semantic")
        bert = load_part(self._folder, "semantic", "BertModel")
        tokenizer = import_library("tokenizers", "semantic").Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(self._longest)
        tokenizer.enable_padding()
        return compute, compute.prepared(bert), tokenizer

    @property
    def device(self) -> Any:
        return self._model[0].device

    @property
    def at_once(self) -> int:
        return available_cores() if self.device.type == "cpu" else 1

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return token_counts(self._model[2], texts)

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The mean of the states of a text's tokens, at length 1."""
        compute, bert, tokenizer = self._model
        torch, encodings = compute.torch, tokenizer.encode_batch(list(texts))
        ids, mask = (
            torch.tensor([getattr(encoding, part) for encoding in encodings], device=self.device)
            for part in ("ids", "attention_mask")
        )
        with torch.inference_mode():  # attention without a mask is quicker
            states = bert(input_ids=ids, attention_mask=None if mask.all() else mask).last_hidden_state
            return compute.numpy(torch.nn.functional.normalize((states * mask[:, :, None]).sum(1), dim=1))


_packaged_minilm = lru_cache(1)(_PackagedMiniLM)  # a second φ of a process need not hash the weights again


def _loaded(model: str, options: EncodeOptions) -> Encoder:
    try:
        return load_encoder(model, device=options.device, offline=options.offline)
    except MissingExtraError as error:
        raise MissingExtraError("semantic", "sentence-transformers", "semantic") from error
    except CrosslensError as error:
        raise UsageError(
            f"semantic needs the sentence encoder {model.partition(':')[2]}: {error}",
            fix=f"{_INSTALL} brings its encoders; or name one that is here: semantic:sentence:PATH",
        ) from error


def embedding_similarity(
    encoder: str | Encoder | Any, over: Literal["mean", "max"] = "mean", *, cache: Cache | None = None
) -> EmbeddingSimilarity:
    """φ under an encoder: its name, or an object with ``encode_texts``."""
    model = load_encoder(encoder)
    require_modality(model, TEXTS)
    kind = "embed" if over == "mean" else "embed-max"
    return EmbeddingSimilarity(f"{kind}:{model.name}", model.revision, _vectors_of(model, cache), over)


def _register(kind: str, over: Literal["mean", "max"], summary: str) -> None:
    def load(
        source: str = "", *, device: str | None = None, offline: bool = False, cache: CacheChoice = True
    ) -> Similarity:
        if not source:
            example = f"say which: for example {kind}:sentence:all-MiniLM-L6-v2"
            raise UsageError(f"{kind} without an encoder", fix=example)
        if source.startswith(_STORED):
            return StoredEmbeddingSimilarity(source.removeprefix(_STORED), over)
        encoder = load_encoder(source, device=device, offline=offline)
        return embedding_similarity(encoder, over, cache=Cache.of(cache))

    load.__doc__ = f"""{summary}

    source: the encoder, as `KIND:SOURCE`: `sentence:all-MiniLM-L6-v2`, `clip:openai/clip-vit-base-patch32`; or
        `vectors:PATH`, the vectors of the dataset's captions in files or shards
    device: where it computes; by default a GPU if there is one
    offline: never use the network
    cache: keep vectors between runs; or the folder to keep them in
    """
    SIMILARITIES.register(kind, example=f"{kind}:sentence:all-MiniLM-L6-v2", extra="sentence")(load)


_register("embed", "mean", "The mean cosine between a caption and an image's captions under a text encoder, −1 to 1.")
_register(
    "embed-max",
    "max",
    "The largest cosine between a caption and any of an image's captions under a text encoder, −1 to 1."
    "\n\n    A caption among the image's own captions finds itself: 1.",
)
