"""IMP's tables and figures on the data at hand, a line each, for docs/reproduction.md.

The same functions fill docs/results/difficulty.md and docs/results/polysemy.md, where the figures are explained.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import difficulty
import polysemy
from crosslens.analyze import Difficulty, measure_stability
from difficulty import PANELS, SMALL_PANEL, percent
from hardest import LOOKED_AT, count_kinds, hardest
from panel import Data
from panel_levels import LEVELS, SEED, WEAKEST, Study, studies_of

TRAINED, LINEAR = "head L6", "ridge L3"


def difficulty_rows(data: Path) -> dict[str, str]:
    """What the panel says of Flickr8k's captions, and of COCO's where the paper shows those."""
    flickr, coco = studies_of(Data(data))
    return {
        "IMP Table 1": people_line(flickr, data),
        **area_lines(flickr, data),
        "IMP Table 4": retrieval_line(flickr),
        "IMP Table 11": "; ".join(score_line(flickr.difficulty, member) for member in (TRAINED, LINEAR)),
        "IMP Figure 6": "; ".join(share_line(study) for study in (flickr, coco)),
        "IMP Figure 7": kinds_line(coco),
    }


def people_line(study: Study, data: Path) -> str:
    """How many of the crowd accept captions of each level, on average and at least."""
    rated = difficulty.crowd_answers(study, data)
    parts = []
    for level in LEVELS:
        yes = rated.filter(pl.col("difficulty") == level)["yes"]
        parts.append(
            f"{level} {percent(float(yes.mean()))} %, least {percent(float(yes.min()))} % ({len(yes)} captions)"
        )
    return f"Flickr8k, yes of the crowd: {', '.join(parts)}"


def area_lines(study: Study, data: Path) -> dict[str, str]:
    """AUPRC: the panel's mean and spread, and some members."""
    voting = [member for member in study.judged if member != WEAKEST]
    rejected = difficulty.expert_rejections(study, data)
    found = difficulty.area_results(study, study.difficulty, rejected, voting)
    table = found.classification.filter(pl.col("model").is_in(voting))
    spread = table.group_by("category").agg(pl.col("value").mean().alias("mean"), pl.col("value").std().alias("sd"))
    means = {row["category"]: f"{row['mean']:.2f} ± {row['sd']:.2f}" for row in spread.to_dicts()}
    members = (
        f"{member} " + ", ".join(f"{found.value(member, 'AUPRC', level):.2f}" for level in LEVELS)
        for member in (TRAINED, "grid L3", LINEAR)
    )
    return {
        "IMP Table 2": "Flickr8k: " + ", ".join(f"{level} {means[level]}" for level in LEVELS),
        "IMP Table 5": f"Flickr8k: {'; '.join(members)}",
    }


def retrieval_line(study: Study) -> str:
    """Hit@5 and the median rank of one member by level, image to text as in print."""
    found = difficulty.by_level(study)
    hits, ranks = (
        ", ".join(show(found.value(TRAINED, metric, level, direction="i2t", denominator=way)) for level in LEVELS)
        for metric, way, show in (("Hit@5", "all", percent), ("MedR[all]", "category", "{:,.0f}".format))
    )
    return f"{TRAINED}, Flickr8k: R@5 i2t {hits}; medR {ranks}"


def score_line(levels: Difficulty, member: str) -> str:
    """A member's score of pairs, by level."""
    column = f"score[{member}]"
    parts = {"all": levels.table, **{name: levels.table.filter(pl.col("difficulty") == name) for name in LEVELS}}
    cells = (f"{name} {float(part[column].mean()):.2f} ± {float(part[column].std()):.2f}"
             for name, part in parts.items())  # fmt: skip
    return f"{member}: {', '.join(cells)}"


def share_line(study: Study) -> str:
    """Shares of the levels, and how stable they are."""
    shares = ", ".join(f"{percent(share.mean)} % {name}" for name, share in study.difficulty.shares().items())
    kappas = measure_stability(study.difficulty, SMALL_PANEL, repeats=PANELS, seed=SEED)
    return f"{study.name}: {shares}; κ {kappas.lowest:.2f}–{kappas.highest:.2f}"


def kinds_line(study: Study) -> str:
    """What the hardest pairs are."""
    counts = count_kinds(hardest(study)["caption"].to_list())
    return f"of the {LOOKED_AT} hardest: " + "; ".join(f"{kind}: {count}" for kind, count in counts.items())


def polysemy_rows(data: Path) -> dict[str, str]:
    """Curves and co-captions of both datasets, at equal size."""
    spaces = polysemy.Spaces(Data(data))
    sets = polysemy.equal_sets(spaces)
    curves = {placed.name: {int(row["R"]): row for row in placed.curves} for placed in sets}
    by_size = "; ".join(
        f"{what} at R = 1, 25, 100: "
        + ", ".join(f"{name} {' / '.join(f'{rows[size][column]:.3f}' for size in (1, 25, 100))}"
                    for name, rows in curves.items())
        for what, column in (("cosine of photos", "image_similarity"), ("angle to captions", "caption_distance"))
    )  # fmt: skip
    joint = polysemy.diversities(sets, words=False)
    tests = polysemy.diversities(polysemy.test_sets(spaces), words=True)
    return {
        "IMP Figure 3": by_size,
        "IMP Figure 5": "; ".join(
            f"{name}: co-captions {found.estimates['co_caption_cosine'].mean:.3f}, photo and caption "
            f"{found.estimates['pair_cosine'].mean:.3f}"
            for name, found in joint.items()
        ),
        "IMP Figure 23": "; ".join(
            f"{name}: word matching F {found.estimates['co_caption_words'].mean:.3f}, sentence cosine "
            f"{found.estimates['co_caption_sentence'].mean:.3f}"
            for name, found in tests.items()
        ),
    }
