"""Every figure of docs/results/difficulty.md: how hard Flickr8k's and COCO's captions are for a panel of real scorers.

    make reproduce-difficulty                   # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/difficulty.py --write      # put the tables into the page
    python reproduce/difficulty.py --sheets DIR # the hardest pairs with their photos, to look at

The panel is that of ``panel.py``, which keeps its matrices: the first call takes a quarter of an hour, the next ones
two minutes. What the hardest pairs are was looked at by eye and written into ``hardest_pairs.toml``. Heads are trained
on one thread with a seed; another processor can still round differently, and change the last digit of a figure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from crosslens.analyze import (
    Categories,
    CategoryResults,
    Difficulty,
    category_results,
    classification_pairs,
    measure_filter_loss,
    measure_left_out,
    measure_stability,
)
from crosslens.core.rendering import Grid
from hardest import hardest, kinds_table, others
from pages import markdown, update_page
from panel import Array, Data, Judged, figures
from panel_levels import LEVELS, SEED, WEAKEST, Study, studies_of
from sheets import write_sheets

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "difficulty.md"
BATCHES = (16, 64, 256, 1024, None)
SMALL_PANEL, PANELS = 5, 10
POOL_SHARES = (0.9, 0.5, 0.4, 0.3, 0.1)
FILTERS = ("head L6", "ridge L6")
TEXT_ONLY = ("text L6", "text L3")
VARIANTS: dict[str, tuple[str, ...]] = {
    "all members": (),
    "without `tiny`": (WEAKEST,),
    "without text-only": TEXT_ONLY,
    "without both": (*TEXT_ONLY, WEAKEST),
}


# The panel and its levels


def member_table(study: Study) -> str:
    """What each member reaches, its threshold, and how many of the evaluated pairs it accepts."""
    header = ("member", "i2t Hit@1", "@5", "@10", "t2i Hit@1", "@5", "@10", "threshold", "precision, %", "recall, %",
              "F1, %", "accepts, %")  # fmt: skip
    rows = []
    for member, judged in study.judged.items():
        chosen = study.calibrations[member]
        hits = [f"{value:.1f}" for value in figures(study.dataset, judged.scores)]
        shares = (
            chosen.precision,
            chosen.recall,
            chosen.f1,
            float((study.own_scores(member) >= chosen.threshold).mean()),
        )
        rows.append((member, *hits, f"{chosen.threshold:.3f}", *map(percent, shares)))
    return markdown(Grid(header, tuple(rows), "l" + "r" * 11))


def shares_table(studies: Sequence[Study]) -> str:
    """The share of each level, by who votes."""
    rows = []
    for study in studies:
        for variant, without in VARIANTS.items():
            result = study.levels(without=without)
            cells = [f"{percent(share.mean)} [{percent(share.low)}, {percent(share.high)}]"
                     for share in result.shares().values()]  # fmt: skip
            rows.append((study.name, variant, str(len(result.panel)), *cells))
    return markdown(Grid(("dataset", "who votes", "members", *(f"{name}, %" for name in LEVELS)), tuple(rows),
                         "llr" + "r" * 3))  # fmt: skip


def batch_table(studies: Sequence[Study]) -> str:
    """The shares by how many mismatches a pair is calibrated against."""
    rows = []
    for batch in BATCHES:
        cells = []
        for study in studies:
            result = study.levels((WEAKEST,), study.calibrated(batch))
            cells += [percent(share.mean) for share in result.shares().values()]
        rows.append(("all" if batch is None else f"{batch:,}", *cells))
    header = ("mismatches in batches of", *(f"{study.name} {name}, %" for study in studies for name in LEVELS))
    return markdown(Grid(header, tuple(rows), "r" * len(header)))


def kappa_table(studies: Sequence[Study]) -> str:
    """κ between ten random panels, from all members, and without the weakest."""
    rows = []
    for study in studies:
        for variant in list(VARIANTS)[:2]:
            found = measure_stability(study.levels(VARIANTS[variant]), SMALL_PANEL, repeats=PANELS, seed=SEED)
            spans = [f"{percent(min(values))}–{percent(max(values))}"
                     for values in ([shares[name] for shares in found.shares] for name in LEVELS)]  # fmt: skip
            kappas = (f"{found.mean:.2f}", f"{found.lowest:.2f}–{found.highest:.2f}")
            rows.append((study.name, variant, f"{found.size} of {found.models}", *kappas, *spans))
    header = ("dataset", "drawn from", "members", "κ, mean", "κ, range", *(f"{name}, %" for name in LEVELS))
    return markdown(Grid(header, tuple(rows), "lll" + "r" * 5))


def left_out_table(study: Study) -> str:
    """What changes without the weakest of all members, and without each one of the others."""
    everybody, voting = (measure_left_out(study.levels(members)) for members in list(VARIANTS.values())[:2])
    rows = []
    for left_out, panel in [*((one, " of all members") for one in everybody if one.role == "weakest"),
                            *((one, "") for one in voting)]:  # fmt: skip
        name = f"{left_out.model} ({left_out.role}{panel})" if left_out.role else left_out.model
        shares = [percent(left_out.shares[level]) for level in LEVELS]
        rows.append((name, percent(left_out.changed), f"{left_out.kappa:.2f}", *shares))
    header = ("left out", "changed, %", "κ", *(f"{name}, %" for name in LEVELS))
    return markdown(Grid(header, tuple(rows), "l" + "r" * 5))


# By category


def area_table(study: Study, rejected: pl.DataFrame | None = None) -> str:
    """AUPRC of every member on each level; the mean and spread; and each member by the levels of the others."""
    results = area_results(study, study.difficulty, rejected, list(study.judged))
    columns = ("total", *LEVELS)
    rows = [
        (member, *(figure(results.value(member, "AUPRC", level)) for level in columns)) for member in results.models
    ]
    voting = [member for member in study.judged if member != WEAKEST]
    values = np.array([[results.value(member, "AUPRC", level) for level in columns] for member in voting])
    rows.append(("mean of those that vote", *map(figure, values.mean(axis=0))))
    rows.append(("sd", *map(figure, values.std(axis=0, ddof=1))))
    others = []
    for member in voting:
        levels = study.levels(without=(WEAKEST, member))
        found = area_results(study, levels, rejected, [member])
        others.append([found.value(member, "AUPRC", level) for level in columns])
    rows.append(("mean, levels by the others", *map(figure, np.array(others).mean(axis=0))))
    first = results.classification.filter(pl.col("model") == voting[0])
    chances = dict(first.select("category", "chance").iter_rows())
    counts = dict(first.select("category", "positives").iter_rows())
    rows.append(("constant score", *(figure(chances[level]) for level in columns)))
    rows.append(("pairs that match", *(f"{counts[level]:,}" for level in columns)))
    return markdown(Grid(("member", *columns), tuple(rows), "l" + "r" * 4))


def area_results(
    study: Study, levels: Difficulty, rejected: pl.DataFrame | None, members: Sequence[str]
) -> CategoryResults:
    """AUPRC against one drawn caption of another photo per photo, or against captions that experts rejected."""
    table = levels.table.with_columns(
        pl.Series(f"score[{member}]", study.own_scores(member)) for member in study.judged
    )
    pairs = classification_pairs(
        study.dataset, Categories.of(table), rejected, negatives=1 if rejected is None else "all", seed=SEED
    )
    scores = {}  # those of rejected captions are in the tables
    if rejected is None:
        scores = {member: study.judged[member].scores[pairs.pairs.images, pairs.pairs.captions] for member in members}
    return category_results((), table, pairs=pairs, scores=scores, resamples=0)


def expert_rejections(study: Study, folder: Path) -> pl.DataFrame:
    """Captions of other photos to which three experts gave the lowest grade, with every member's score."""
    image_row = {image: row for row, image in enumerate(study.dataset.image_ids)}
    caption_row = {caption: row for row, caption in enumerate(study.dataset.caption_ids)}
    lines = (folder / "flickr8k" / "ExpertAnnotations.txt").read_text(encoding="utf-8").splitlines()
    pairs = [(image, caption) for image, caption, *grades in map(str.split, lines)
             if grades == ["1"] * 3 and not caption.startswith(image)]  # fmt: skip
    images, captions = [image_row[image] for image, _ in pairs], [caption_row[caption] for _, caption in pairs]
    return pl.DataFrame(
        {
            "image": [image for image, _ in pairs],
            "text": [study.dataset.texts[row] for row in captions],
            **{
                f"score[{member}]": judged.scores[images, captions].astype(np.float64)
                for member, judged in study.judged.items()
            },
        }
    )


def by_level(study: Study) -> CategoryResults:
    """Retrieval of every member by level."""
    return category_results(study.runs, study.difficulty, metrics=["Hit@5", "MedR[all]"], resamples=0)


def retrieval_table(study: Study, direction: str) -> str:
    """Hit@5 of the queries with a caption of a level, and the median rank, by level."""
    results = by_level(study)
    header = ("member", *(f"Hit@5, {name}" for name in LEVELS), "MedR", *LEVELS)
    rows = []
    for member in study.judged:

        def value(metric: str, level: str, denominator: str | None, member: str = member) -> float:
            return results.value(member, metric, level, direction=direction, denominator=denominator)

        hits = [value("Hit@5", level, "category") for level in LEVELS]
        ranks = [value("MedR[all]", "total", None), *(value("MedR[all]", level, "category") for level in LEVELS)]
        rows.append((member, *map(percent, hits), *(f"{rank:,.0f}" for rank in ranks)))
    return markdown(Grid(header, tuple(rows), "l" + "r" * 7))


def crowd_answers(study: Study, folder: Path) -> pl.DataFrame:
    """Captions of the photo itself that the crowd was asked about, with their level and the share of yes."""
    lines = (folder / "flickr8k" / "CrowdFlowerAnnotations.txt").read_text(encoding="utf-8").splitlines()
    rated = {caption: float(share) for image, caption, share, *_ in map(str.split, lines) if caption.startswith(image)}
    table = study.difficulty.table.filter(pl.col("caption").is_in(list(rated)))
    return table.with_columns(pl.col("caption").replace_strict(rated, return_dtype=pl.Float64).alias("yes"))


def people_table(study: Study, folder: Path) -> str:
    """What share of the crowd said yes to a caption of the photo itself, by level."""
    answers = crowd_answers(study, folder)
    rows = []
    for level in LEVELS:
        yes = answers.filter(pl.col("difficulty") == level)["yes"]
        cells = (float(yes.mean() or 0), float((yes == 1).mean() or 0), float((yes == 0).mean() or 0))
        rows.append((level, f"{len(yes):,}", *map(percent, cells)))
    header = ("level", "rated captions", "yes, %", "all said yes, %", "all said no, %")
    return markdown(Grid(header, tuple(rows), "lrrrr"))


# Filters


def filter_table(study: Study) -> str:
    """What a filter by one member's score throws away, at thresholds that keep given shares of a noisy pool."""
    rows = []
    for member in FILTERS:
        pool = noisy_pool(study.judged[member])
        found = measure_filter_loss(study.difficulty, member, keep=POOL_SHARES, web_scores=pool).table
        for threshold in found["threshold"].unique(maintain_order=True):
            part = found.filter(pl.col("threshold") == threshold)
            lost = dict(part.select("level", "lost").iter_rows())
            cells = map(percent, (lost["all"], *(lost[level] for level in LEVELS)))
            rows.append((member, f"{percent(part['keeps'][0])}", f"{threshold:.3f}", *cells))
    header = ("filter", "keeps of the pool, %", "threshold", "loses of all, %", *(f"of {name}, %" for name in LEVELS))
    return markdown(Grid(header, tuple(rows), "l" + "r" * 6))


def noisy_pool(judged: Judged) -> Array:
    """Scores of the calibration pairs and of as many mismatches: half of the pool is noise."""
    part = judged.calibrated_on.dataset
    captions = np.arange(len(part.caption_ids))
    wrong = (part.caption_image + np.random.default_rng(SEED).integers(1, len(part.image_ids), len(captions))) % len(
        part.image_ids
    )
    return np.concatenate([judged.calibration[part.caption_image, captions], judged.calibration[wrong, captions]])


# The page


def percent(share: float) -> str:
    """A share in percent."""
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def figure(value: float) -> str:
    """An area."""
    return "–" if np.isnan(value) else f"{value:.2f}"


def tables_of(studies: Sequence[Study], folder: Path) -> dict[str, str]:
    """Every block of the page."""
    tables = {
        "shares": shares_table(studies),
        "batches": batch_table(studies),
        "kappa": kappa_table(studies),
        "kinds": kinds_table(studies),
    }
    for study in studies:
        tables |= {
            f"members-{study.key}": member_table(study),
            f"left-out-{study.key}": left_out_table(study),
            f"auprc-{study.key}": area_table(study),
            f"retrieval-t2i-{study.key}": retrieval_table(study, "t2i"),
            f"retrieval-i2t-{study.key}": retrieval_table(study, "i2t"),
            f"filter-{study.key}": filter_table(study),
        }
    flickr = studies[0]
    return tables | {
        "auprc-rejected": area_table(flickr, expert_rejections(flickr, folder)),
        "people": people_table(flickr, folder),
    }


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--sheets", type=Path, help="only write the hardest pairs with their photos into this folder")
    asked = parser.parse_args()
    data = Data()
    studies = studies_of(data)
    if asked.sheets is not None:
        for study in studies:
            pictures = data.splits[study.key].test.pictures
            assert pictures is not None
            for name, captions in (("hardest", hardest(study)["caption"].to_list()), ("others", others(study))):
                write_sheets(study.dataset, captions, pictures, asked.sheets, f"{study.key}-{name}")
        return 0
    return update_page(PAGE, tables_of(studies, data.folder), write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
