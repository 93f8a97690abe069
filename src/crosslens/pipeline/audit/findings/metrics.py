"""What the metrics of a run say: the headline, the other direction, ties, groups, and models side by side."""

from __future__ import annotations

from collections.abc import Iterator

from crosslens.pipeline.audit.findings.figures import (
    Payload,
    Statement,
    interval,
    percent,
    points,
    surely_above,
    surprise,
)

_QUERIES = {"t2i": "captions", "i2t": "images", "t2t": "captions"}
_SMALLEST_GROUP = 20
_NOTICEABLE_TIES = 0.005


def evaluated(payload: Payload) -> Iterator[Statement]:
    """How often the first result is right, and what R@5 would have meant: what everybody expects to be told."""
    metrics = payload["metrics"]
    for direction, importance in (("t2i", 0.55), ("t2t", 0.55), ("i2t", 0.45)):
        first = metrics.get(f"{direction}/Hit@1")
        if first is None or first["mean"] is None:
            continue
        tenth = metrics.get(f"{direction}/Hit@10")
        more = f"; one of the first ten is right for {percent(tenth)}" if tenth else ""
        yield Statement(f"The top result is right for {percent(first)} of {_QUERIES[direction]}{more}.", importance)
    yield from _recalls(payload)
    yield from _graded(payload)


def _recalls(payload: Payload) -> Iterator[Statement]:
    names = ("i2t/Hit@5", "i2t/Recall@5", "i2t/CappedRecall@5")
    values = [payload["metrics"].get(name) for name in names]
    hit, recall, capped = values
    if hit is None or recall is None or capped is None or hit["mean"] - recall["mean"] < 0.05:
        return
    yield Statement(
        f"“R@5” of images may mean Hit@5 ({percent(hit)}), Recall@5 ({percent(recall)}) or CappedRecall@5 "
        f"({percent(capped)}): say which.",
        0.35,
    )


def _graded(payload: Payload) -> Iterator[Statement]:
    metrics = payload["metrics"]
    name = next((name for name in metrics if name.startswith("t2i/NCS[")), None)
    hit = metrics.get("t2i/Hit@10")
    if name is None or hit is None or metrics[name]["mean"] is None:
        return
    figure = metrics[name]
    yield Statement(
        f"By what their captions say, the first ten images are worth {percent(figure)} of the best possible ten "
        f"({name.split('/')[1]}).",
        0.4,
    )


def tied(payload: Payload) -> Iterator[Statement]:
    """What the rule for ties decides, where it decides anything."""
    modes = payload["modes"]
    if not {"optimistic", "pessimistic"} <= set(modes):
        return
    for name in ("t2i/Hit@1", "i2t/Hit@1"):
        best, worst = modes["optimistic"].get(name), modes["pessimistic"].get(name)
        if best is None or worst is None:
            continue
        span = best["mean"] - worst["mean"]
        if span > _NOTICEABLE_TIES:
            yield Statement(
                f"Ties decide {points(span)} of {name}: it is {percent(worst)} if they are all lost and "
                f"{percent(best)} if they are all won.",
                min(0.98, 0.6 + 2 * span),
            )


def grouped(payload: Payload) -> Iterator[Statement]:
    """The group that is worst off in each column, where the intervals of best and worst do not overlap."""
    for table in payload["groups"]:
        for name in ("t2i/Hit@1", "i2t/Hit@1"):
            groups = {
                group: figure
                for group, figure in table["metrics"].get(name, {}).items()
                if figure["n"] >= _SMALLEST_GROUP and figure["mean"] is not None
            }
            if len(groups) < 2:
                continue
            worst, best = (choose(groups, key=lambda group: groups[group]["mean"]) for choose in (min, max))
            if groups[worst]["high"] is None or not surely_above(groups[best], groups[worst]["high"]):
                continue
            whole = sum(figure["n"] * figure["mean"] for figure in groups.values()) / sum(
                figure["n"] for figure in groups.values()
            )
            yield Statement(
                f"By {table['by']}, {name} is lowest for {worst}: {percent(groups[worst])}, against "
                f"{percent(groups[best])} for {best}.",
                surprise(whole - groups[worst]["high"], whole),
            )


def ranked_models(payload: Payload) -> Iterator[Statement]:
    """Which model is best on each dataset, and whether that could be chance."""
    metric = next((name for name in ("t2i/Hit@1", "i2t/Hit@1") if name in payload["metrics"]), None)
    for dataset in payload["datasets"]:
        cells = [cell for cell in payload["cells"] if cell["dataset"] == dataset and cell["metric"] == metric]
        best = next((cell for cell in cells if cell["best"]), None)
        others = [cell for cell in cells if cell["difference"] is not None]
        if best is None or not others:
            continue
        second = min(others, key=lambda cell: abs(cell["difference"]))
        verdict = "more than chance explains" if second["significant"] else "which may be chance"
        where = f"On {dataset}, " if len(payload["datasets"]) > 1 else ""
        yield Statement(
            f"{where}{best['model']} is best by {metric} with {percent(best)}, "
            f"{points(abs(second['difference']))} ahead of {second['model']}: {verdict}.",
            0.6 if second["significant"] else 0.9,
        )


def hard_cases(payload: Payload) -> Iterator[Statement]:
    """How often the right caption wins against nearly right ones, beside chance."""
    for result in payload["results"]:
        figures = [figure for figure in result["figures"] if figure["value"] is not None]
        overall = next((figure for figure in figures if figure["grouping"] == "all"), None)
        if overall is None:
            continue
        text = f"Against captions that are nearly right, the right one wins in {percent(overall, 'value')} of cases"
        text += f" (chance: {100 * overall['chance']:.0f} %)"
        groups = [figure for figure in figures if figure["grouping"] not in ("all", "macro")]
        if len(groups) > 1:
            worst = min(groups, key=lambda figure: figure["value"])
            text += f", least often for {worst['category']}: {100 * worst['value']:.0f} %{interval(worst)}"
        yield Statement(f"{text}.", 0.6 if surely_above(overall, overall["chance"]) else 0.9)
