"""Metrics as people write them: ``"t2i/Hit@5 MedR"`` becomes what to compute, with notes for the reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from crosslens.core import CrosslensError, UnknownNameError, UsageError, plugin_hashes
from crosslens.metrics.family import METRICS, RSUM_CUTOFFS, MetricSpec, family_of, read_spec
from crosslens.values import METRIC_NAMES, Relevance, Run, split_name

DIRECTIONS = ("i2t", "t2i", "t2t")
DEFAULT_METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR", "MedR", "mAP@R", "RPrecision", "Fails", "Rsum")
"""The metrics that are computed by default; Rsum only where both directions are there."""

_WORD = re.compile(r"(?:\[[^\]]*\]?|[^\s,\[])+")
_AMBIGUOUS = re.compile(r"R@(\d+)", re.IGNORECASE)
_IR_NAMES = {"p": "Precision", "rr": "MRR", "rprec": "RPrecision", "success": "Hit"}
"""Measures of ir_measures and trec_eval that have another name here; AP, AP@k and nDCG@k have the same."""
_IR_MEASURE = re.compile(r"(?:P|RR|Success)@\d+|RR|Rprec", re.IGNORECASE)


@dataclass(frozen=True)
class MetricRequest:
    """A metric to compute, in one direction or (None) in every one there is; ``notes`` are for the reader."""

    spec: MetricSpec
    direction: str | None = None
    notes: tuple[str, ...] = ()

    def names(self, directions: Iterable[str]) -> tuple[str, ...]:
        """The names of its results when ``directions`` are there: ``t2i/Hit@5``, or plain ``Rsum``."""
        if self.spans_both:
            return (str(self.spec),)
        return tuple(f"{name}/{self.spec}" for name in directions if self.direction in (None, name))

    @property
    def spans_both(self) -> bool:
        """Whether its figure is over both directions together: ``Rsum``, but not ``t2i/Rsum``."""
        return family_of(self.spec).across and self.direction is None

    def __str__(self) -> str:
        return str(self.spec) if self.direction is None else f"{self.direction}/{self.spec}"


def metric_plugins(requests: Iterable[MetricRequest]) -> dict[str, str]:
    """The plugins that these metrics come from, by file name, with their content hashes: other code, other values."""
    return plugin_hashes(METRICS[request.spec.family].plugin for request in requests)


def parse_metrics(text: str | Iterable[str | MetricSpec | MetricRequest] | None = None) -> list[MetricRequest]:
    """Read metrics from text. A metric named twice is kept once.

    Args:
        text: One text (separated by spaces or commas), or several; None for the default metrics. Where a name was
            ambiguous, the requests' ``notes`` say how it was read.
    """
    parts: Iterable[str | MetricSpec | MetricRequest]
    parts = DEFAULT_METRICS if text is None else [text] if isinstance(text, str) else text
    requests: dict[tuple[MetricSpec, str | None], MetricRequest] = {}
    for part in parts:
        for word in split_metrics(part) if isinstance(part, str) else [part]:
            request = parse_metric(word) if isinstance(word, str) else _checked(word)
            key = request.spec, request.direction
            earlier = requests.get(key, request)
            requests[key] = replace(earlier, notes=tuple(dict.fromkeys((*earlier.notes, *request.notes))))
    if not requests:
        raise UsageError("no metrics were named", fix=f"name some, such as {' '.join(DEFAULT_METRICS[:3])}")
    return list(requests.values())


def split_metrics(text: str) -> list[str]:
    """The metric names in one text: ``"Hit@1, SR[spice, m=20]@5"`` contains two."""
    return _WORD.findall(text)


def parse_metric(text: str) -> MetricRequest:
    """Read one metric with its optional direction: ``Hit@5``, ``t2i/MedR[floor]``; case alone is no error."""
    before, slash, after = text.strip().partition("/")
    direction, written = (before.lower(), after) if slash and "[" not in before else (None, text.strip())
    if direction is not None and direction not in DIRECTIONS:
        raise UnknownNameError("direction", direction, DIRECTIONS)
    notes: tuple[str, ...] = ()
    ambiguous = _AMBIGUOUS.fullmatch(written)
    if ambiguous:
        k = ambiguous[1]
        note = (
            f"R@{k} read as Hit@{k}, any relevant item in the top {k}, as the image-text matching literature means it; "
            f"for the IR definition write Recall@{k} (R@{k} of ir_measures), for the one capped at k CappedRecall@{k}"
        )
        written, notes = f"Hit@{k}", (note,)
    measure, at, k = written.partition("@")
    if _IR_MEASURE.fullmatch(written) and measure not in METRICS:  # a plugin may have a metric of that name
        family = METRICS[_IR_NAMES[measure.lower()]].value
        notes = (f"{written} read as {family.name}{at}{k}: {family.definition}",)
        written = f"{family.name}{at}{k}"
    return _checked(MetricRequest(read_spec(written), direction, notes))


@METRIC_NAMES.register("stored")
def matching_names(metric: str, names: Iterable[str]) -> list[str]:
    """Which of the full names are meant by a metric as people write it; without a direction, those of every direction.

    ``R@5`` is ``Hit@5`` among results. ``Rsum`` is the sum over both directions where there is one, and not
    ``t2i/Rsum``. A metric of a plugin that is not loaded is known by its stored name.
    """
    try:
        written = {metric, str(parse_metric(metric))}
    except CrosslensError:
        written = {metric}
    names = list(names)
    for folded in (str, str.casefold):  # case alone is no error
        meant = set(map(folded, written))
        matching = [name for name in names if folded(name) in meant]
        if matching := matching or [name for name in names if folded(split_name(name)[1]) in meant]:
            return matching
    return []


def _checked(request: MetricSpec | MetricRequest) -> MetricRequest:
    request = MetricRequest(request) if isinstance(request, MetricSpec) else request
    spec = request.spec
    name, _, cutoff = spec.family.partition("@")
    if spec.family not in METRICS and cutoff and name in METRICS:
        raise UsageError(
            f"the cutoff of {str(spec)!r} is {cutoff!r}", fix="write a whole number from 1 after the @, such as @10"
        )
    return replace(request, spec=family_of(spec).checked(spec))


def select_metrics(run: Run, metrics: str | Sequence[str] | None = None) -> list[str]:
    """The full names of the chosen metrics in a run; a name without a direction means every direction that has it."""
    if metrics is None:
        return list(run)
    selected: dict[str, None] = {}
    for metric in metric_names(metrics):
        matching = matching_names(metric, run)
        if not matching:
            raise UnknownNameError("metric in this run", metric, {*run, *(split_name(name)[1] for name in run)})
        selected.update(dict.fromkeys(matching))
    return list(selected)


def metric_names(metrics: str | Sequence[str]) -> list[str]:
    """The chosen metrics as a list."""
    return split_metrics(metrics) if isinstance(metrics, str) else list(metrics)


def dataset_name(run: Run) -> str:
    """The name of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("name", ""))


def dataset_revision(run: Run) -> str:
    """The fingerprint of the dataset behind a run; nothing where it had none."""
    return str(run.provenance.get("dataset", {}).get("fingerprint", ""))


def option_values(requests: Sequence[MetricRequest], option: str) -> list[str]:
    """The values of ``option`` in the graded metrics among ``requests``, each once."""
    return list(dict.fromkeys(value for value, _ in requests_naming(requests, option)))


def requests_naming(requests: Sequence[MetricRequest], option: str) -> Iterator[tuple[str, MetricRequest]]:
    """The graded metrics that name a value of ``option``, each with that value."""
    for request in graded_requests(requests):
        value = family_of(request.spec).value_of(request.spec, option)
        if value is not None:
            yield value, request


def graded_requests(requests: Sequence[MetricRequest]) -> list[MetricRequest]:
    """The graded metrics among ``requests``."""
    return [request for request in requests if family_of(request.spec).graded]


def list_depth(requests: Sequence[MetricRequest], relevance: Mapping[str, Relevance]) -> int:
    """How much of each retrieved list the graded metrics among ``requests`` need; 0 without any."""
    return max((_cutoff(request) + _removed(request, relevance) for request in graded_requests(requests)), default=0)


def ideal_depth(requests: Sequence[MetricRequest], relevance: Mapping[str, Relevance]) -> int:
    """How much of each ideal list the graded metrics among ``requests`` need."""
    return max(
        (int(request.spec.setting("m") or _cutoff(request)) + _removed(request, relevance)
         for request in graded_requests(requests)), default=1,
    )  # fmt: skip


def _cutoff(request: MetricRequest) -> int:
    return request.spec.cutoff or RSUM_CUTOFFS[-1]


def _removed(request: MetricRequest, relevance: Mapping[str, Relevance]) -> int:
    """The most ground-truth items that are taken out of a list."""
    if not request.spec.has("non-gt"):
        return 0
    import numpy as np

    counts = [np.bincount(truth.rows[truth.grades > 0], minlength=1).max(initial=0) for truth in relevance.values()]
    return int(max(counts, default=0))
