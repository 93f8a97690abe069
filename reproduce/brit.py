"""Every figure of docs/results/brit-align.md: a real model's lists under BRIT's thirteen perturbations.

    make reproduce-brit                     # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/brit.py --write        # put the tables into the page

The lists are ALIGN's, as the paper's authors published them: the first ten photos for each of Flickr30k's 5,000 test
captions, unperturbed and perturbed, over all 31,000 photos; and the first ten captions for each of COCO's 5,000 test
photos. Nothing is encoded. The exit status says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import crosslens as cl
from crosslens.core import Table
from crosslens.pipeline.robustness_study.tables import CHANGE_GROUPS
from crosslens.report.forms.tables import markdown_table
from pages import real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "brit-align.md"
LISTS = "runs/align-f30k-t2i"
COCO_LISTS, COCO_CAPTIONS = "runs/align-coco5k-i2t.run.gz", "coco_karpathy_test/captions.tsv.gz"

TABLE_2 = {
    "ALIGN": ((60.48, 22.93, 88.90, 35.56), (64.20, 25.60, 90.80, 39.80)),
    "AltCLIP": ((58.64, 22.47, 86.40, 33.06), (61.83, 25.45, 87.40, 37.10)),
    "CLIP": ((50.08, 16.15, 79.30, 19.30), (55.20, 16.15, 82.60, 24.92)),
    "GroupViT": ((34.38, 8.29, 50.80, 8.36), (34.38, 9.58, 52.30, 8.92)),
    "SCAN": ((45.30, 11.46, 68.10, 22.70), (50.90, 14.55, 72.30, 26.28)),
    "UNITER": ((59.08, 22.05, 80.70, 42.86), (64.82, 27.32, 85.00, 49.38)),
    "VSE++": ((41.26, 10.51, 52.80, 19.80), (45.44, 12.93, 57.20, 23.18)),
    "VSRN": ((50.22, 13.73, 69.90, 29.10), (55.82, 16.83, 75.30, 33.42)),
    "X-VLM": ((80.98, 38.77, 96.80, 73.10), (84.16, 44.50, 97.40, 78.70)),
}
"""R@1 with original and with refined captions: MS-COCO i2t and t2i, Flickr30k i2t and t2i."""
TABLE_3 = {
    "Flickr30k, t2i": ("35.56", "58.78", "67.64", "161.98"),
    "MS-COCO, i2t": ("60.48", "42.22", "54.42", "157.12"),
}
"""ALIGN's rows of the paper's Table 3: R@1, R@5, R@10, rsum."""
TABLE_4 = {
    "char_swap": 14.77, "missing_char": 7.01, "extra_char": 8.58, "nearby_char": 14.14, "synonym_noun": 7.35,
    "synonym_adj": 2.89, "distraction_true": 2.20, "distraction_false": 0.31, "shuffle_nouns_and_adj": 15.28,
    "shuffle_all_words": 23.56, "shuffle_allbut_nouns_and_adj": 14.31, "shuffle_within_trigrams": 11.68,
    "shuffle_trigrams": 8.90,
}  # fmt: skip
"""The column F30k of Table 4: the decrease of rsum, averaged over four models; its unit is not printed."""
TABLE_5 = {"Flickr30k": ("0.1342", "0.0513", "0.6136"), "MS-COCO": ("0.1680", "0.0802", "0.6810")}
"""ALIGN's rows of Table 5: decreased, increased, unchanged."""


def study(data: Path) -> cl.Robustness:
    """ALIGN on Flickr30k, from its lists."""
    folder = data / LISTS
    relevance = cl.read_qrels(folder / "qrels.txt")
    return cl.robustness_from_runs(folder, relevance, directions="t2i", name="ALIGN", dataset_name="Flickr30k")


def average_gains(without: str = "") -> tuple[float, float]:
    """By how many percent refined captions raise R@1 of MS-COCO and Flickr30k: the mean of the models' own changes."""
    models = np.array([rows for model, rows in TABLE_2.items() if model != without])
    relative = 100 * (models[:, 1] / models[:, 0] - 1)
    return float(relative[:, :2].mean()), float(relative[:, 2:].mean())


def before_table(result: cl.Robustness, data: Path) -> Table:
    """Table 3: the figures of the unperturbed lists."""
    before = dict(result.drops.select("metric", "before").unique().iter_rows())
    hits = [100 * before[f"t2i/Hit@{k}"] for k in (1, 5, 10)]
    recalls = [100 * value for value in coco_recalls(data)]
    ours = {"Flickr30k, t2i": [*hits, before["t2i/Rsum"]], "MS-COCO, i2t": [*recalls, sum(recalls)]}
    rows = []
    for name, printed in TABLE_3.items():
        metric = "Hit" if name.endswith("t2i") else "CappedRecall"
        rows.append((name, f"{metric}@k, from the lists", *(f"{value:.2f}" for value in ours[name])))
        rows.append((name, "printed", *printed))
    return Table(("ALIGN", "", "@1", "@5", "@10", "sum"), tuple(rows), "llrrrr")


def coco_recalls(data: Path) -> list[float]:
    """CappedRecall@1, @5 and @10, image to text, with the five captions of each photo as relevant."""
    relevant: dict[str, list[str]] = {}
    with gzip.open(data / COCO_CAPTIONS, "rt", encoding="utf-8", newline="") as file:
        for caption, image, *_ in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            relevant.setdefault(image, []).append(caption)
    names = [f"CappedRecall@{k}" for k in (1, 5, 10)]
    lists = cl.read_run(data / COCO_LISTS)
    judged = {query: relevant[query] for query in lists.query_ids}
    run = cl.evaluate(run=lists, relevance=judged, directions=["i2t"], metrics=names, resamples=0)
    return [run[f"i2t/{name}"].mean for name in names]


def drops_of(result: cl.Robustness) -> dict[str, dict[str, float]]:
    """The drop of the headline by perturbation."""
    rows = result.drops.filter(pl.col("metric") == result.headline)
    return {row["perturbation"]: row for row in rows.to_dicts()}


def drops_table(result: cl.Robustness) -> Table:
    """Table 4, in points and in percent, with intervals."""
    lines = []
    for name, printed in TABLE_4.items():
        row, cells = drops_of(result)[name], []
        for figure, low, high in (("drop", "low", "high"), ("percent", "percent_low", "percent_high")):
            cells += [f"{row[figure]:.2f}", f"[{row[low]:.1f}, {row[high]:.1f}]"]
        lines.append((name, *cells, f"{printed:.2f}"))
    header = (
        "perturbation", "ALIGN, points of t2i/Rsum", "95% interval", "ALIGN, percent", "95% interval",
        "printed, mean of four models",
    )  # fmt: skip
    return Table(header, tuple(lines), "lrlrlr")


def fit_table(result: cl.Robustness) -> Table:
    """How far the printed column is from both readings, over the perturbations whose lists are perturbed."""
    drops = drops_of(result)
    perturbed = [name for name in TABLE_4 if name not in unchanged(result)]
    rows = []
    for reading, figure in (("points", "drop"), ("percent of the rsum before", "percent")):
        far = {name: abs(drops[name][figure] - TABLE_4[name]) for name in perturbed}
        nearest, farthest = min(far, key=far.__getitem__), max(far, key=far.__getitem__)
        mean = sum(far.values()) / len(far)
        cells = (f"{name} {far[name]:.2f}" for name in (nearest, farthest))
        rows.append((reading, str(len(far)), f"{mean:.2f}", *cells))
    header = ("the printed decrease is read as", "perturbations", "mean distance", "nearest", "farthest")
    return Table(header, tuple(rows), "lrrll")


def unchanged(result: cl.Robustness) -> list[str]:
    """The perturbations whose lists are those of the original captions."""
    return result.changes.filter(pl.col("unchanged") == pl.col("queries"))["perturbation"].to_list()


def groups_table(result: cl.Robustness) -> Table:
    """Table 5: over all pairs of perturbations, and over those that change a list at all."""
    overlap = {row["group"]: row["jaccard"] for row in result.overlap.to_dicts()}
    changing = [name for name in result.perturbations if name not in unchanged(result)]
    pairs = result.overlap_pairs.filter(pl.col("first").is_in(changing) & pl.col("second").is_in(changing))
    without = {name: pairs.filter(pl.col("group") == name)["jaccard"].to_numpy() for name in CHANGE_GROUPS}
    count = len(list(combinations(changing, 2)))
    rows = [
        (f"from the lists, all {len(result.perturbations)}", *(f"{overlap[name]:.4f}" for name in CHANGE_GROUPS)),
        (f"from the lists, the {len(changing)} that change any ({count} pairs)",
         *(f"{np.nanmean(without[name]):.4f}" for name in CHANGE_GROUPS)),
        *((f"printed, {name}", *printed) for name, printed in TABLE_5.items()),
    ]  # fmt: skip
    return Table(("ALIGN", *CHANGE_GROUPS), tuple(rows), "lrrr")


def main() -> int:
    """Print the tables, and write them into the page or compare them with it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--write", action="store_true", help="write the page instead of comparing with it")
    options = asked.parse_args()
    data = real_data(LISTS, COCO_LISTS, COCO_CAPTIONS)
    result = study(data)
    tables = {
        "before": before_table(result, data), "drops": drops_table(result), "fit": fit_table(result),
        "groups": groups_table(result),
    }  # fmt: skip
    return update_page(PAGE, {name: markdown_table(table) for name, table in tables.items()}, write=options.write)


if __name__ == "__main__":
    sys.exit(main())
