"""What docs/reproduction.md measures: each function here gives the figures of some tables and figures of the papers.

A measurement takes the folder of the real data and returns texts by row, such as ``{"BRIT Table 3": "35.56 …"}``. The
other scripts of this folder have the functions that compute; here their results become one line each. Sizes are chosen
so that all measurements together take about half an hour on two cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import adversarial_table
import brit
import crosslens as cl
import explain_coco
import granularity
import imp_rows
import recos_coco
import semantics
import sugar_crepe
from crosslens.build import grammar_counts, verdict_counts
from crosslens.cli.console import progress_bar
from crosslens.encode import Cache, encode_dataset, load_encoder
from crosslens.explanations.causes import UNEXPLAINED
from crosslens.explanations.overview import concept_figure, explain_run, is_open
from crosslens.perturbations import perturb_all
from crosslens.perturbations.selection import ADVERSARIAL
from crosslens.pipeline import curve, find_protocol
from crosslens.synth import VERSIONS, select_version, write_scenes
from crosslens.values import MetricValues
from flickr8k import METRICS as RANKS, encoders, figures

Figures = dict[str, str]
Compute = Callable[[Path], Figures]

SMALL = "paraphrase-MiniLM-L3-v2"
"""The sentence encoder that takes part everywhere; EXPL's best on VG∩COCO, and the quicker of the two at hand."""
CAPTION = "A young man in a red jacket walks two small dogs along the beach."
SCENES, GALLERY, SEED = 120, 1200, 7
COUNTS = (1, 5, 10, 20, 50)
PHOTOS = "1,000 photos of COCO val2017"


@dataclass(frozen=True)
class Measurement:
    """``needs`` are the parts of the data folder that it reads."""

    name: str
    needs: tuple[str, ...]
    compute: Compute

    def lacks(self, data: Path) -> tuple[str, ...]:
        """What it needs and ``data`` does not have."""
        return tuple(part for part in self.needs if not (data / part).exists())


MEASUREMENTS: dict[str, Measurement] = {}


def measurement(name: str, *needs: str) -> Callable[[Compute], Compute]:
    """Register a measurement."""

    def register(compute: Compute) -> Compute:
        MEASUREMENTS[name] = Measurement(name, needs, compute)
        return compute

    return register


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f}"


# BRIT


@measurement("align-lists", brit.LISTS, brit.COCO_LISTS, brit.COCO_CAPTIONS)
def align_lists(data: Path) -> Figures:
    """Everything that ALIGN's published lists give."""
    study = brit.study(data)
    before = {row[0]: row[2:] for row in brit.before_table(study, data).rows if row[1] != "printed"}
    flickr, coco = before["Flickr30k, t2i"], before["MS-COCO, i2t"]
    (every, *all_pairs), (changing, *changing_pairs), *_ = brit.groups_table(study).rows
    names = ("decreased", "increased", "unchanged")
    return {
        "BRIT Table 2": f"ALIGN, original captions: MS-COCO i2t {coco[0]}, Flickr30k t2i {flickr[0]}; averages of the "
        "printed rows: {:.2f} % and {:.2f} % of nine models, ".format(*brit.average_gains())
        + "{:.2f} % and {:.2f} % without X-VLM".format(*brit.average_gains("X-VLM")),
        "BRIT Table 3": f"ALIGN: Flickr30k t2i {' / '.join(flickr[:3])}, rsum {flickr[3]}; "
        f"MS-COCO i2t {' / '.join(coco[:3])}, rsum {coco[3]}",
        "BRIT Table 4": "ALIGN, Flickr30k, percent (points): "
        + ", ".join(f"{name} {row['percent']:.2f} ({row['drop']:.2f})" for name, row in brit.drops_of(study).items())
        + "; mean distance from the printed column: "
        + ", ".join(f"{row[2]} in {row[0].split()[0]}" for row in brit.fit_table(study).rows),
        "BRIT Table 5": "ALIGN, Flickr30k: "
        + "; ".join(
            f"{words}: " + ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
            for words, values in ((every, all_pairs), (changing, changing_pairs))
        ),
    }


@measurement("granularity", "coco_karpathy_test")
def caption_granularity(data: Path) -> Figures:
    """The columns of BRIT's Table 1 on COCO's 5K test captions."""
    means = cl.granularity(granularity.coco(data), progress=progress_bar())
    features = find_protocol("brit", "granularity").setting("granularity", "features")
    cells = ", ".join(f"{feature.replace('_', ' ')} {means[feature]:.2f}" for feature in features)
    return {"BRIT Table 1": f"MS-COCO 5K test: {cells}"}


@measurement("perturbations")
def perturbations(data: Path) -> Figures:
    """BRIT's thirteen perturbations of a caption."""
    names = find_protocol("brit", "robustness").setting("robustness", "perturbations")
    changed = {name: rows[0] for name, rows in perturb_all(names, [CAPTION], seed=SEED).items()}
    applied = sum(one.applied for one in changed.values())
    swapped, shuffled = (changed[name].text for name in ("char_swap", "shuffle_nouns_and_adj"))
    return {
        "BRIT Figure 1": f"{applied} of {len(names)} change *{CAPTION}*; `char_swap`: *{swapped}*, "
        f"`shuffle_nouns_and_adj`: *{shuffled}*"
    }


# EXPL


def flickr_text_only(data: Path, model: str) -> Figures:
    """Captions of Flickr8k against captions of Flickr8k."""
    dataset = cl.load_dataset("flickr", captions=data / "flickr8k" / "Flickr8k.token.txt")
    values = dict(zip(RANKS, figures(dataset, encoders()[model]), strict=True))
    hits = " / ".join(f"{values[f'Hit@{k}']:.4f}" for k in (1, 5, 10))
    return {"EXPL Table 6": f"{model} {hits}, {values['MRR']:.4f}"}


for _model, _name in ((SMALL, "text-only"), ("all-MiniLM-L6-v2", "text-only-l6")):
    measurement(_name, "flickr8k/Flickr8k.token.txt")(partial(flickr_text_only, model=_model))


def zebras() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """EXPL's example: its concepts and counts, with boxes that have the differences it prints."""
    common = {"field": ((1000,), (2369,)), "mane": ((10,), (33, 34, 35, 36, 37)),
              "zebra": ((100, 200, 300, 400, 0), (100, 210, 330, 450, 900, 950, 990))}  # fmt: skip
    sides: list[list[dict[str, object]]] = [
        [{"synset": f"{name}.n.01"} for name in alone]
        for alone in (("trunk", "hill", "tree", "sky", "branch", "head", "leg", "leaf"), ("grassland", "grass"))
    ]
    for name, areas in common.items():
        for objects, own in zip(sides, areas, strict=True):
            synset = {"synset": f"{name}.n.01"}
            objects += [synset | {"box": [0, 0, area, 1]} if area else dict(synset) for area in own]
    return sides[0], sides[1]


@measurement("worked-example")
def worked_example(data: Path) -> Figures:
    """The concept metrics of EXPL's Figure 4."""
    found = cl.concept_metrics(*zebras())
    return {
        "EXPL Figure 4": f"CA {100 * found['CA']:.2f} % ({len(found['common'])} of 11), NCS "
        f"{found['NonCommonSimilarity']:.5f}, CE {found['CE']:.0f}, SD {100 * found['SD[binary]']:.1f} %"
    }


@measurement("coco-failures", "coco_val2017_1k")
def coco_failures(data: Path) -> Figures:
    """Why text-only retrieval over COCO's captions fails."""
    dataset = explain_coco.dataset_of(data, "coco_val2017_1k", "")
    found = explain_coco.explained(explain_coco.encoded(dataset, encoders()[SMALL]), SMALL)
    queries, failures = found.queries.height, found.failures.height
    own = {row["metric"]: row for row in found.metrics.filter(pl.col("scope") == "all").to_dicts()}
    names = {
        "CA": "CA",
        "NonCommonSimilarity": "NCS",
        "CE": "CE",
        "SD[binary]": "SD",
        "matched_synsets": "matched synsets",
    }
    numbers = {row["causes"]: row for row in found.cause_numbers.to_dicts()}
    words = {1: "one", 2: "two", 3: "three"}
    return {
        "EXPL Table 1": f"{PHOTOS}, {SMALL}: Hit@1 {percent(1 - failures / queries)}, "
        f"{failures:,} failures of {queries:,} ({percent(failures / queries)} %)",
        "EXPL Table 2": f"{PHOTOS}, derived main cause: "
        + ", ".join(
            f"{row['cause']} {'open' if is_open(row) else percent(row['main_share']) + ' %'}"
            for row in found.causes.to_dicts()
        ),
        "EXPL Table 3": f"{PHOTOS}, {SMALL}: "
        + ", ".join(f"{name} {concept_figure(metric, own[metric])}" for metric, name in names.items()),
        "EXPL Figure 10": f"{PHOTOS}, derived causes: "
        + ", ".join(f"{words[n]} {percent(numbers[n]['of_caused'])} %" for n in words if n in numbers)
        + f"; no cause shown in {percent(numbers[0]['share'])} % of failures",
    }


TRUE_CAUSES = {"colour": "colour", "count": "count", "location": "position", "action": "action", "object": "object",
               "figure": "object"}  # fmt: skip
"""What a twin of a scene violates, by the task of the scene; of all other tasks a detail: a word, a sum, a place."""


@measurement("twin-causes")
def twin_causes(data: Path) -> Figures:
    """How often a failure's cause is right, where it is known: `tiny` retrieved the scene with one fact changed."""
    with tempfile.TemporaryDirectory() as scratch:
        drawn = write_scenes(Path(scratch) / "scenes", 2 * SCENES, "all", 11, version="v1", progress=progress_bar())
        encoded = encode_dataset(drawn, load_encoder("tiny"), image_folder=Path(scratch) / "scenes", cache=Cache(),
                                 progress=progress_bar())  # fmt: skip
        run = cl.evaluate(
            drawn, images=encoded.images, captions=encoded.captions, directions=["t2i"], metrics="Hit@1", resamples=0,
            output=Path(scratch) / "run",
        )  # fmt: skip
        failures = explain_run(run, drawn, resamples=0, progress=progress_bar()).failures
    scenes = {row["image"]: row for row in drawn.images.to_dicts()}
    pairs = [
        (row["main_cause"], TRUE_CAUSES.get(scenes[row["ground_truth"]]["task"], "detail"))
        for row in failures.to_dicts()
        if len({scenes[row[side]]["original"] or row[side] for side in ("ground_truth", "retrieved")}) == 1
    ]
    named = [cause == true for cause, true in pairs if cause != UNEXPLAINED]
    return {
        "EXPL Table 2": f"drawn scenes, `tiny` retrieved the twin in {len(pairs):,} failures: a cause is named in "
        f"{percent(len(named) / len(pairs))} %, and right in {percent(sum(named) / len(named))} % of these"
    }


@measurement("adversarial-shares", "coco_karpathy_test")
def adversarial_shares(data: Path) -> Figures:
    """How many queries change on COCO's 5K test captions, all five of a photo as one query, and each as one.

    ``antonym`` takes an opposite of the same kind, ``antonym[any]`` is the paper's sentence read literally.
    """
    coco = granularity.coco(data)
    names = dict.fromkeys((*find_protocol("expl", "robustness").setting("robustness", "perturbations"), *ADVERSARIAL))
    changed = perturb_all(list(names), coco, seed=0, progress=progress_bar())
    shares = {
        "five captions as one query": (adversarial_table.by_image(coco, rows) for rows in changed.values()),
        "single captions": (adversarial_table.by_caption(rows) for rows in changed.values()),
    }
    cells = (
        f"{queries}: {listed(changed, (f'{percent(float(np.mean(applied)))} %' for applied in parts))}"
        for queries, parts in shares.items()
    )
    return {"EXPL Table 4": f"changed, COCO 5K test, {'; '.join(cells)}"}


@measurement("adversarial-ranks", "coco_val2017_1k")
def adversarial_ranks(data: Path) -> Figures:
    """What the words do to ranks on 1,000 photos of COCO, one caption as query."""
    dataset = cl.load_dataset("coco", captions=str(data / "coco_val2017_1k" / "captions.json"))
    study = cl.robustness(
        dataset, models={SMALL: encoders()[SMALL]}, image_text="mean", query_caption=0,
        perturbations=[*ADVERSARIAL, "antonym[any]"], permutations=1, resamples=0, progress=progress_bar(),
    )  # fmt: skip
    rows = {row["perturbation"]: row for row in study.changes.to_dicts()}
    moves = (" / ".join(percent(row[way]) for way in ("lower", "higher", "same")) for row in rows.values())
    after = {"original": (next(iter(rows.values())), "before"), **{name: (row, "after") for name, row in rows.items()}}
    hits = (" / ".join(percent(row[f"Hit@{k} {when}"]) for k in (1, 10)) for row, when in after.values())
    return {
        "EXPL Table 4": f"lower / higher / same, {PHOTOS}: {listed(rows, moves)}",
        "EXPL Table 5": f"{PHOTOS}, Hit@1 / Hit@10: {listed(after, hits)}",
    }


def listed(names: Iterable[str], values: Iterable[str]) -> str:
    """Names with their values."""
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


# FIVE and IMP


@measurement("agreement", "flickr8k")
def agreement(data: Path) -> Figures:
    """φ against Flickr8k's experts."""
    dataset, people = semantics.flickr(data)
    found = cl.agreement(dataset, people["expert"], ("spice", "cider:split"), resamples=0, progress=progress_bar())
    sides = [found.subsets[name].figures for name in ("all", "non-gt")]
    parts = (f"{phi} {' / '.join(semantics.number(side[phi]['pearson'].mean) for side in sides)}" for phi in sides[0])
    return {
        "FIVE Table 1": f"Flickr8k-Expert, {found.subsets['all'].pairs:,} pairs, all / outside: " + ", ".join(parts)
    }


@measurement("training-figures")
def training_figures(_: Path) -> Figures:
    """FIVE's models with and without SAM on parts of Flickr8k, from the figures that training.py keeps."""
    import training

    figures = training.Figures(training.FIGURES)
    cells, by_tau = training.table_2_cells(), training.cvse_cells()
    published = f" + SAM, τ {training.PUBLISHED_TAU:g}, weight {training.PUBLISHED_WEIGHT:g}"

    def sums(sampling: str) -> str:
        own = by_tau[sampling, training.TAUS[0], True, training.STUDIED]
        values = (f"{name} {training.mean_text(figures.values(own, key))}" for key, name in training.FIVE_SUMS.items())
        return f"CVSE, Flickr8k {training.STUDIED:.0%}, τ = {training.TAUS[0]:g}, {sampling}: {', '.join(values)}"

    rows = [
        f"{fraction:.0%}: {model} Rsum {without}, with SAM {with_sam}"
        for fraction in training.FRACTIONS
        for model in ("SGR", "CVSE")
        for without, with_sam in [
            [training.mean_text(figures.values(cells[model, losses, fraction], "Rsum")) for losses in ("", published)]
        ]
    ]
    return {
        "FIVE Table 2": f"Flickr8k, {'; '.join(rows)}", "FIVE Table 4": sums("soft"), "FIVE Table 5": sums("random"),
    }  # fmt: skip


@measurement("linear-model", "flickr8k")
def linear_model(data: Path) -> Figures:
    """A ridge regression from photos to caption vectors, on Flickr8k's test photos, as FIVE and IMP evaluate models."""
    whole = cl.load_dataset("flickr", captions=data / "flickr8k" / "Flickr8k.token.txt")
    names, features = sugar_crepe.features_of(data / "flickr8k" / "features")
    row_of = {name: row for row, name in enumerate(names)}
    train, test = (
        (data / "flickr8k" / f"Flickr_8k.{part}Images.txt").read_text(encoding="utf-8").split()
        for part in ("train", "test")
    )
    texts = recos_coco.captions_of(whole.select(train))
    rows = [row_of[image] for image in texts]
    tower = recos_coco.Tower(encoders()[SMALL], features[rows], list(texts.values()))
    dataset = whole.select(test)
    run = cl.evaluate(
        dataset, images=tower.see(features[[row_of[image] for image in dataset.image_ids]]),
        captions=tower.encode_texts(dataset.texts), resamples=0, protocol="imp", progress=progress_bar(),
        metrics=["Rsum", "Nsum[spice, zero]", "Nsum[spice, non-gt, zero]"],
    )  # fmt: skip
    curves = curve([run], dataset, "spice", m=COUNTS, by_image=True, resamples=0, progress=progress_bar())
    ((_, families),) = curves.values.items()
    lines = {name: ", ".join(percent(value.mean) for value in values) for name, values in families.items()}
    value = {name: one.mean for name, one in run.values.items()}
    return {
        "FIVE Table 3": f"linear model, Flickr8k test: Rsum {value['Rsum']:.1f}, Nsum "
        f"{value['Nsum[spice, zero]']:.1f}, Nsum(N) {value['Nsum[spice, non-gt, zero]']:.1f}",
        "FIVE Figure 3": f"linear model, Flickr8k test, m = {', '.join(map(str, COUNTS))}: SRhit@5 {lines['SRhit']}; "
        f"SR@5 {lines['SR']}",
        "IMP Table 3": f"linear model, Flickr8k test: R@1 i2t {percent(value['i2t/Hit@1'])}, t2i "
        f"{percent(value['t2i/Hit@1'])}; medR {value['i2t/MedR[all]']:.0f}, {value['t2i/MedR[all]']:.0f}; mAP@R "
        f"{100 * value['i2t/mAP@R']:.3f}, {100 * value['t2i/AP']:.3f}",
    }


for _name, _rows in (("difficulty", imp_rows.difficulty_rows), ("polysemy", imp_rows.polysemy_rows)):
    measurement(_name, "flickr8k", "coco_val2017", "coco_val2017_1k")(_rows)


# RECOS


@measurement("recos-build", "coco_val2017", "coco_val2017_1k")
def recos_build(data: Path) -> Figures:
    """The paper's procedure on 1,000 photos of COCO."""
    photos = recos_coco.Photos((SMALL,))
    settings, grammar = recos_coco.BUILDS["as in the paper"]
    with tempfile.TemporaryDirectory() as scratch:
        built = photos.build(settings, grammar, Path(scratch))
    sizes = "; ".join(
        f"{name} {len(one.image_ids):,} images, {len(one.caption_ids):,} captions"
        for name, one in built.versions.items()
    )
    tasks = built.versions["v0"].images["task"].value_counts().sort("count", "task", descending=[True, False])
    verdicts = verdict_counts(built.log)
    return {
        "RECOS Table 1": f"ridge model into the space of {SMALL}: {sizes}; {len(tasks)} tasks",
        "RECOS Figure 3": ", ".join(f"{task} {count}" for task, count in tasks.iter_rows()),
        "RECOS Figure 5": f"η = {settings.eta}, k = {settings.k}: {sum(verdicts.values()):,} descriptions checked, "
        + ", ".join(f"{count:,} {name}" for name, count in verdicts.items())
        + f"; {grammar_counts(built.log)['ungrammatical']:,} written ones ungrammatical",
    }


@measurement("recos-scenes")
def recos_scenes(data: Path) -> Figures:
    """The built-in model on drawn scenes, their twins, and a gallery of similar scenes."""
    with tempfile.TemporaryDirectory() as scratch:
        drawn = write_scenes(Path(scratch) / "scenes", SCENES, "all", SEED, version="v2", gallery=GALLERY,
                             progress=progress_bar())  # fmt: skip
        encoder, runs = load_encoder("tiny"), {}
        for version in VERSIONS:
            dataset = select_version(drawn, version)
            encoded = encode_dataset(dataset, encoder, image_folder=Path(scratch) / "scenes", cache=Cache(),
                                     progress=progress_bar())  # fmt: skip
            directions = recos_coco.VERSIONS[version]
            runs[version] = cl.evaluate(
                dataset, images=encoded.images, captions=encoded.captions, directions=directions, metrics="Hit@1",
                resamples=0,
            )  # fmt: skip
    hits = "; ".join(
        f"{version} ({len(run.rankings['t2i'].item_ids):,} images) "
        + " / ".join(
            percent(run[f"{way}/Hit@1"].mean) if f"{way}/Hit@1" in run.values else "–" for way in ("i2t", "t2i")
        )
        for version, run in runs.items()
    )
    return {
        "RECOS Table 3": f"Hit@1 i2t / t2i: {hits}",
        "RECOS Figure 2": ", ".join(sorted(set(drawn.images["task"]))),
        "RECOS Figure 6": by_task(runs["v1"], "i2t/Hit@1"),
        "RECOS Figure 7": by_task(runs["v1"], "t2i/Hit@1"),
    }


def by_task(run: cl.Run, metric: str) -> str:
    """Hit@1 of every task, the easiest first."""
    groups: Mapping[str, MetricValues] = cl.group_metrics(run, "task", metric, resamples=0).values[metric]
    ordered = sorted(groups, key=lambda task: (-groups[task].mean, task))
    return "`tiny`, v1: " + ", ".join(f"{task} {percent(groups[task].mean)}" for task in ordered)
