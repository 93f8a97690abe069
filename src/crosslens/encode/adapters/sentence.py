"""Text encoders of the sentence-transformers library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosslens.core import MissingExtraError, UsageError
from crosslens.encode.adapters.transformers_dual import loading
from crosslens.encode.encoder import ENCODERS, TEXTS, Array, Encoder, is_local, name_of
from crosslens.encode.hub import find_model
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import Compute

_OWNER = "sentence-transformers"


@ENCODERS.register("sentence", example="all-MiniLM-L6-v2", extra="sentence")
def load_sentence(source: str, options: EncodeOptions) -> Encoder:
    """Sentence embeddings (SBERT), texts only: a name such as ``all-MiniLM-L6-v2``, ``owner/name``, or a folder."""
    return SentenceEncoder(source, options)


class SentenceEncoder:
    """A sentence-transformers model: its own pooling and normalisation, as stored with it."""

    abilities = frozenset((TEXTS,))
    logit_scale: float | None = None

    def __init__(self, source: str, options: EncodeOptions) -> None:
        self.name = name_of("sentence", source)
        compute = Compute(options, "a sentence encoder")
        self.device = compute.device
        try:
            import sentence_transformers
        except ImportError as error:
            raise MissingExtraError("a sentence encoder", "sentence-transformers", "sentence") from error
        bare = "/" not in source and not is_local(source)
        location = find_model(f"{_OWNER}/{source}" if bare else source, options)
        self.revision = location.revision
        with loading(location.folder):
            self.model = sentence_transformers.SentenceTransformer(
                str(location.folder), device=str(compute.device), local_files_only=True
            )
            compute.moved(self.model)
        self.dimension = _dimension(self.model)
        self.preprocessing = f"longest={self.model.max_seq_length}"

    def encode_images(self, images: Sequence[Any]) -> Array:
        """Not what this encoder does."""
        raise UsageError(f"{self.name} encodes texts only", fix="use a dual encoder for images")

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """The library's own ``encode``, one batch."""
        array: Array = self.model.encode(
            list(texts), batch_size=max(len(texts), 1), show_progress_bar=False, convert_to_numpy=True
        )
        return array


def _dimension(model: Any) -> int | None:
    get_dimension = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    dimension = get_dimension()
    return None if dimension is None else int(dimension)
