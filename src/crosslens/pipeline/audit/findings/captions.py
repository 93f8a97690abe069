"""What the dataset says about itself: suspect labels, missing positives, how fine-grained and how hard captions are."""

from __future__ import annotations

from collections.abc import Iterator

from crosslens.pipeline.audit.findings.figures import Payload, Statement, percent, share

_FEW_WORDS = 8
_REASONS = (
    (
        "same caption",
        "caption also belongs to another image: no model can tell which is meant",
        "captions also belong to another image: no model can tell which is meant",
    ),
    ("same picture", "picture is in the dataset under another id, too", "pictures are in the dataset more than once"),
    ("says nothing", "caption says nothing about its image", "captions say nothing about their image"),
)


def suspect_labels(payload: Payload) -> Iterator[Statement]:
    """How many failures are explained by their labels, and captions that several images have."""
    for run in payload["runs"]:
        if run["failures"] and run["annotation"]:
            yield Statement(
                f"{share(run['annotation'], run['failures'])} of the {run['failures']:,} misses of {run['run']} "
                f"({run['annotation']:,}) have a label problem: they are not the model's.",
                _weight(run["annotation"], run["queries"]),
            )
    reasons = payload["reasons"]
    for reason, single, several in _REASONS:
        if count := reasons.get(reason):
            yield Statement(f"{count:,} {single if count == 1 else several}.", 0.5 if count > 1 else 0.2)


def _weight(affected: int, queries: int) -> float:
    """How much it matters: by the share of all queries."""
    return 0.5 + 0.4 * min(1.0, 4 * affected / queries)


def unannotated_matches(payload: Payload) -> Iterator[Statement]:
    """How many misses retrieve something that fits."""
    for name, counts in payload.get("misses", {}).items():
        if counts["misses"] and counts["fitting"]:
            yield Statement(
                f"{share(counts['fitting'], counts['misses'])} of the {counts['misses']:,} misses of {name} retrieve "
                f"an image that its captions say fits.",
                _weight(counts["fitting"], counts["queries"]),
            )
    if payload["pairs"]:
        yield Statement(
            f"{payload['pairs']:,} pairs that nobody annotated are as similar by {payload['phi']} as half of the "
            f"annotated ones.",
            0.3,
        )


def fine_grained(payload: Payload) -> Iterator[Statement]:
    """How long captions are, and how many adjectives they have."""
    for dataset in payload["datasets"]:
        features = dataset["features"]
        words, adjectives = (features.get(name, {}).get("mean") for name in ("words", "adjectives"))
        if words is not None and adjectives is not None:
            coarse = words < _FEW_WORDS
            yield Statement(
                f"Captions of {dataset['name']} have {words:.1f} words and {adjectives:.1f} adjectives on average"
                f"{': too few to tell similar images apart' if coarse else ''}.",
                0.4 if coarse else 0.15,
            )


def hard_pairs(payload: Payload) -> Iterator[Statement]:
    """How many pairs no model recognises as a match."""
    hard = payload["levels"].get("hard")
    if hard is None or hard["share"] is None:
        return
    models = len(payload["models"])
    who = "the model does not" if models == 1 else f"none of the {models} models does"
    yield Statement(f"{percent(hard, 'share')} of pairs are hard: {who} score them as a match.", 0.3)


def diverse_captions(payload: Payload) -> Iterator[Statement]:
    """How the distance of captions grows with the neighbourhood."""
    for dataset in payload["datasets"]:
        curves = [row for row in dataset["curves"] if row["caption_distance"]["mean"] is not None]
        if len(curves) < 2:
            continue
        first, last = curves[0], curves[-1]
        yield Statement(
            f"The captions of an image's {last['R']} most similar images are "
            f"{last['caption_distance']['mean'] / first['caption_distance']['mean']:.2f} times as far from it as those "
            f"of the {'single' if first['R'] == 1 else first['R']} most similar one.",
            0.1,
        )
