"""The options of the pipeline's functions, each declared once for Python, recipes and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crosslens.comparisons import PRIMARY
from crosslens.core import Options, option
from crosslens.encode import QUERY_CAPTION, SHARED_IMAGES, query_choice

if TYPE_CHECKING:
    from crosslens.encode import Summariser, TextOnly
    from crosslens.similarity import CacheChoice

# What several classes declare.
_score = partial(
    option,
    None,
    "How two embeddings are compared. [default: by their kind, cosine for single vectors]",
    metavar="NAME",
    recorded=False,
)
_ties = partial(
    option,
    "stable",
    "How tied scores are ranked: stable, optimistic, pessimistic or expected.",
    metavar="MODE",
    recorded=True,
)
_folds = partial(
    option, 1, "Mean over N consecutive parts of the images; 5 for COCO 1K.", metavar="N", minimum=1, recorded=True
)
_skip_unknown = partial(
    option, False, "Leave out what lists and judgements name and the dataset lacks, however much.", recorded=False
)
_seed = partial(option, 0, "Seed of intervals, tests and perturbations.", metavar="N", minimum=0)
_resamples = partial(
    option, 1000, "Resamples for the intervals; 0 for none.", metavar="N", minimum=0, maximum=10_000_000, recorded=True
)
_level = partial(option, 0.95, "Confidence level of the intervals.", metavar="SHARE", above=0, below=1, recorded=True)
_threads = partial(option, None, "Threads to use.", metavar="N", minimum=1, maximum=4096, recorded=False)
_command = partial(option, None, "The command line, stored with the run.", hidden=True)

_COMPLETE = "The lists of --run hold every item of the gallery: needed for --ties expected where scores are tied."
_SAMPLE = "Rank a random sample of this many queries of each direction against the whole gallery."
_RECIPE = "The recipe, stored with the run; or a function that makes it of the names of the run's metrics."
_BOTH = ("i2t", "t2i")
_PROTOCOL = (
    "Follow a paper: five, brit, expl, recos or imp (see crosslens protocols). Its metrics come first, --metrics adds "
    "to them."
)
_DEVICE = (
    "For torch and models: cpu, cuda:1, cuda (all GPUs), or several: cuda:0,cuda:1. GPUs share the ranking; a model "
    "runs on the first."
)


class _OptionsWithDirections(Options):
    directions: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        expanded = dict.fromkeys(part for name in self.directions for part in (_BOTH if name == "both" else (name,)))
        object.__setattr__(self, "directions", tuple(expanded))


@dataclass(frozen=True)
class EvaluateOptions(_OptionsWithDirections, group="Metrics"):
    """How something is evaluated: the keywords of :func:`crosslens.evaluate` and a recipe's ``[options]``.

    What runs record elsewhere (metrics; what is ranked, and how) or what changes no result is ``recorded=False``.
    """

    metrics: tuple[str, ...] = option((), 'Such as "Hit@1 t2i/mAP@R" (see crosslens metrics).', recorded=False)
    directions: tuple[str, ...] = option(
        (),
        "May be given twice. [default: both; i2t for --run without --dataset]",
        metavar="i2t|t2i|both",
        flags=("--direction",),
        recorded=False,
    )
    protocol: str | None = option(None, _PROTOCOL)
    score: str | None = _score()
    ties: str = _ties()
    complete_lists: bool = option(False, _COMPLETE, recorded=False)
    skip_unknown: bool = _skip_unknown()
    folds: int = _folds()
    depth: int = option(10, "How many items of each list the run keeps.", minimum=1, maximum=10_000_000, recorded=True)
    queries: int | None = option(None, _SAMPLE, minimum=1, hidden=True)
    seed: int = option(0, "Seed of the intervals, and of a sample of queries.", minimum=0, recorded=True)
    resamples: int = _resamples()
    level: float = _level()
    backend: str = option("numpy", "What ranks: numpy or torch.", group="Execution", recorded=False)
    device: str | None = option(None, _DEVICE, recorded=False)
    tile: int | None = option(
        None, "Rows scored at a time.", minimum=1, maximum=1_000_000, group="Execution", recorded=False
    )
    threads: int | None = _threads()


@dataclass(frozen=True)
class EvaluateArguments(EvaluateOptions):
    """All keywords of :func:`crosslens.evaluate` that are not data: with those that no ``[options]`` table has."""

    name: str | None = option(None, "Name of the run. [default: the output folder's name]", metavar="TEXT")
    phi: Mapping[str, Any] | None = option(None, "Similarities by the name that metrics use.", hidden=True)
    scores_from: Mapping[str, Any] | None = option(None, "Relevance encoders by name.", hidden=True)
    cache: CacheChoice = option(None, "Where similarities are kept between runs; False for nowhere.", hidden=True)
    texts: TextOnly | None = option(None, "The text sets of text-only retrieval.", hidden=True)
    recipe: str | Callable[[Iterable[str]], str] = option("", _RECIPE, hidden=True)
    command: Sequence[str] | None = _command()


@dataclass(frozen=True)
class SignificanceOptions(Options, group="Statistics and seeds"):
    """How differences are tested."""

    correction: str = option("holm", "Correction for several tests: holm, bh or none.")
    permutations: int = option(10_000, "Permutations of the paired tests.", minimum=1, maximum=10_000_000)
    resamples: int = _resamples()
    level: float = _level()
    seed: int = _seed()

    def __post_init__(self) -> None:
        from crosslens.statistics import correct  # help texts are shown without loading numpy

        super().__post_init__()
        correct([], self.correction)  # an unknown name raises


@dataclass(frozen=True)
class RobustnessOptions(_OptionsWithDirections, SignificanceOptions):
    """How a robustness study is made: the keywords of :func:`crosslens.robustness` besides data and models."""

    seeds: int = option(1, "Perturb with this many seeds, and report the spread.", minimum=1, maximum=1000)
    options: Mapping[str, Any] | None = option(None, "Options of the perturbations, such as k=2.", hidden=True)
    image_text: str | Summariser | None = option(None, "Text-only retrieval: mean, or a summariser, as in evaluate.")
    query_caption: int | str = option(0, QUERY_CAPTION, metavar="N|mean|each")
    shared_images: bool = option(False, SHARED_IMAGES)
    directions: tuple[str, ...] = option(
        (),
        "May be given twice. [default: both; that of the lists, and t2i for lists without --dataset]",
        metavar="i2t|t2i|both",
        flags=("--direction",),
    )
    protocol: str | None = option(
        None, "Follow a paper: brit or expl (see crosslens protocols). Its metrics come first, --metrics adds to them."
    )
    score: str | None = _score()
    listed: int = option(20, "How many of the most brittle queries are listed.", hidden=True)
    match_by: str = option(
        "id",
        "Which queries count as the same in groups and their overlap: those of one id, or captions of one text.",
        metavar="id|text",
        choices=("id", "text"),
    )
    skip_unknown: bool = _skip_unknown()
    threads: int | None = _threads()
    name: str | None = option(
        None,
        "Name of the model whose vectors or lists are given. [default: the lists' own, or embeddings]",
        metavar="TEXT",
    )
    dataset_name: str | None = option(None, "Name of the dataset, where --dataset is not given.", metavar="TEXT")
    command: Sequence[str] | None = _command()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "query_caption", query_choice(self.query_caption))


@dataclass(frozen=True)
class CaptionSetOptions(SignificanceOptions):
    """How two caption sets are compared: the keywords of :func:`crosslens.compare_caption_sets` besides data."""

    primary: str | None = option(None, PRIMARY)
    shared_images: bool = option(False, "Compare the images that both sets have, instead of stopping.")
    score: str | None = _score()
    ties: str = _ties()
    folds: int = _folds()
    granularity: bool | None = option(
        None,
        "Measure the captions themselves. [default: where the extra language is installed]",
        switch_off="--no-granularity Do not measure the captions themselves.",
    )
    threads: int | None = _threads()
    command: Sequence[str] | None = _command()


_PERTURBATIONS = (
    "What robustness changes: names and groups, as in crosslens robustness. [default: all; with --quick char_swap,"
    "shuffle_all_words]"
)
_HARD_NEGATIVES = "Captions that are nearly right: SugarCrepe's, ARO's or Winoground's files, or your own table."


@dataclass(frozen=True)
class AuditOptions(Options):
    """What an audit computes, and how."""

    quick: bool = option(False, "Fewer perturbations, a sample of explanations: about a minute for 1,000 images.")
    only: tuple[str, ...] = option((), "Only this stage; may be repeated (see --list).", metavar="STAGE")
    skip: tuple[str, ...] = option((), "Without this stage; may be repeated.", metavar="STAGE")
    similarity: str | None = option(
        None,
        "The similarity φ of graded metrics, curves and missing positives. [default: cider; for missing positives "
        "semantic, where it is installed]",
    )
    perturbations: str | None = option(None, _PERTURBATIONS, joins=",")
    hard_negatives: str | None = option(None, _HARD_NEGATIVES, metavar="PATH")
    seed: int = _seed()
    resamples: int = option(1000, "Resamples for the intervals.", minimum=1, maximum=10_000_000)
    level: float = _level()
    threads: int | None = _threads()

    @property
    def phi(self) -> str:
        return self.similarity or "cider"

    def facts(self) -> Mapping[str, Any]:
        """Everything that results depend on."""
        return {name: value for name, value in asdict(self).items() if name not in ("only", "skip", "threads")}
