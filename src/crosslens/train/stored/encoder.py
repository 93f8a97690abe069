"""Trained models as encoders and pair scorers, named ``path:models/x``: an entry point imports this module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosslens.core import UsageError
from crosslens.encode import ENCODERS, PAIR_SCORERS, EncodeOptions, Encoder, PairScorer

if TYPE_CHECKING:
    from crosslens.train.stored.models import TrainedModel, TrainedScorer

_OPTIONS = ("features", "encoder", "split", "with")
_PATH = r"(?P<path>[^?]*)(?=(?:.*[?&]features=(?P<features>[^&]*))?)(?=(?:.*[?&]with=(?P<other>[^&]*))?).*"
_EXAMPLE = "models/x"


@ENCODERS.register("path", example=_EXAMPLE, extra="train", path=_PATH)
def load_trained(source: str, options: EncodeOptions) -> Encoder:
    """A model that ``crosslens train`` wrote: its folder; ``?features=FOLDER`` names the features of other images.

    With ``?with=FOLDER`` a score is the mean of this model's and of another's, as SGRAF is the mean of SGR and SAF.
    """
    from crosslens.train.stored.models import FeatureEncoder, TrainedEncoder

    model = _load(source, options)
    if not model.has_vectors:
        return _as_scorer(model)
    return TrainedEncoder(model) if model.pixels is not None else FeatureEncoder(model)


@PAIR_SCORERS.register("path", example=_EXAMPLE, extra="train", path=_PATH)
def load_trained_scorer(source: str, options: EncodeOptions) -> PairScorer:
    """A model that ``crosslens train`` wrote, as a scorer of pairs: its folder."""
    return _as_scorer(_load(source, options))


def _load(source: str, options: EncodeOptions) -> TrainedModel:
    # Looking up any kind of model imports this module: what it takes to run one is imported here.
    from crosslens.train.stored.models import TrainedModel

    path, _, query = source.partition("?")
    options_of_path = dict(part.partition("=")[::2] for part in query.split("&") if part)
    for name, value in options_of_path.items():
        if name not in _OPTIONS or not value:
            problem = f"the model path:{path} has no option {name!r}" if value else f"{name} in path:{source} is empty"
            raise UsageError(problem, fix=f"known: {', '.join(f'{option}=…' for option in _OPTIONS)}")
    return TrainedModel(Path(path).expanduser(), options_of_path, options)


def _as_scorer(model: TrainedModel) -> TrainedScorer:
    from crosslens.train.stored.models import FeatureScorer, TrainedScorer

    return TrainedScorer(model) if model.pixels is not None else FeatureScorer(model)
