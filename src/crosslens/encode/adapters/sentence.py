"""Text encoders of the sentence-transformers library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosslens.core import UsageError
from crosslens.encode.encoder import ENCODERS, TEXTS, Array, import_library, is_local, name_of, require_library
from crosslens.encode.hub import find_model
from crosslens.encode.model_code import refuse_own_modules
from crosslens.encode.options import EncodeOptions
from crosslens.encode.torch_model import Compute, loading
from crosslens.encode.words import word_vectors

_OWNER = "sentence-transformers"


def hub_name(source: str) -> str:
    """Where a sentence encoder is looked for: a bare name is one of the library's own models."""
    return source if "/" in source or is_local(source) else f"{_OWNER}/{source}"


@ENCODERS.register("sentence", example="all-MiniLM-L6-v2", extra="sentence")
class SentenceEncoder:
    """Sentence embeddings (SBERT), texts only: a name such as ``all-MiniLM-L6-v2``, ``owner/name``, or a folder."""

    abilities = frozenset((TEXTS,))
    logit_scale: float | None = None

    def __init__(self, source: str, options: EncodeOptions) -> None:
        self.name = name_of("sentence", source)
        needed = "sentence_transformers", "a sentence encoder", "sentence", "sentence-transformers"
        require_library(*needed)
        folder, self.revision = find_model(hub_name(source), options)
        refuse_own_modules(folder)
        compute = Compute(options, "a sentence encoder")
        self.device = compute.device
        library = import_library(*needed)
        with loading(folder):
            self.model = library.SentenceTransformer(
                str(folder), device=str(compute.device), local_files_only=True, trust_remote_code=False
            )
            compute.moved(self.model)
        # Renamed by the library: older versions know the second name only.
        get_dimension = getattr(self.model, "get_embedding_dimension", None)
        self.dimension: int | None = (get_dimension or self.model.get_sentence_embedding_dimension)()
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

    def encode_words(self, texts: Sequence[str]) -> list[tuple[list[str], Array]]:
        """The words of each text, and their vectors: those of the model's last layer, before they are averaged."""
        vectors = self.model.encode(
            list(texts), batch_size=max(len(texts), 1), show_progress_bar=False, output_value="token_embeddings"
        )
        encodings = self.model.tokenizer(list(texts), truncation=True, max_length=self.model.max_seq_length).encodings
        return [
            word_vectors(encoding.word_ids, encoding.offsets, text, own[: len(encoding.ids)].float().cpu().numpy())
            for encoding, text, own in zip(encodings, texts, vectors, strict=True)
        ]
