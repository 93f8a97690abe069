"""How often what an audit says is true: our own defects in worlds whose truth is known, and an oracle.

    make claims                                    # all of it: tens of minutes on two cores
    python reproduce/claims.py --quick             # one seed, the strongest strengths
    python reproduce/claims.py --only hub          # cases whose name holds a word; the page is not written
    python reproduce/claims.py --case "hub, mean vector" # also prints every sentence and whether it is true

Every case is a world (claims_worlds.py) with at most one defect (claims_plants.py), audited in memory. The oracle
(claims_oracle.py) says which sentences are true. Finished cases are kept in .claims/ until the code changes, so that an
interrupted call resumes. Real captions are used where CROSSLENS_DATA, or ../shared/data, has them. Written are
docs/results/claims.md and the precisions that findings cite.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from claims_oracle import Truth, compared_with, dumped, evidence_ids, hits, image_hits, is_random, members_of, truth_of
from claims_plants import PLANTINGS, Defect
from claims_worlds import CACHE, ROOT, World, flickr_captions, grammar_world, mirror_world, real_data, scenes_world
from crosslens.analyze import find_missing_positives
from crosslens.cli.console import progress_bar
from crosslens.core import Finding
from crosslens.storage import random_stream
from semantics import flickr as judged_flickr

PAGE = ROOT / "docs" / "results" / "claims.md"
PRECISIONS = ROOT / "src" / "crosslens" / "audits" / "precisions.json"
SEEDS = tuple(range(9))
FIRST = 5
Array = np.ndarray[Any, Any]

WORLDS: Mapping[str, Callable[[int], World | None]] = {
    "grammar": grammar_world,
    "grammar-twins": partial(grammar_world, twins=True),
    "random-columns": partial(grammar_world, images=200, columns=6, noise=1.6),
    "scenes-v0-tiny": partial(scenes_world, version="v0", model="tiny"),
    "scenes-v1-tiny": partial(scenes_world, version="v1", model="tiny"),
    "scenes-v2-tiny": partial(scenes_world, version="v2", model="tiny"),
    "scenes-v0-good": partial(scenes_world, version="v0", model="good"),
    "scenes-v0-perfect": partial(scenes_world, version="v0", model="perfect"),
    "scenes-v1-perfect": partial(scenes_world, version="v1", model="perfect"),
    "signs-v1-perfect": partial(scenes_world, version="v1", model="perfect", images=40, tasks="ocr"),
    "sides-v1-perfect": partial(scenes_world, version="v1", model="perfect", images=40, tasks="location"),
    "flickr-hashing": partial(mirror_world, source="flickr"),
    "flickr-columns": partial(mirror_world, source="flickr", images=120, columns=6),
    "coco-hashing": partial(mirror_world, source="coco"),
    "flickr-minilm": partial(mirror_world, source="flickr", encoder="minilm"),
}
CONTROLS = (*WORLDS,)
PAIRS = {
    **dict.fromkeys(
        ("equal models", "the same model twice"),
        ("grammar", "flickr-hashing", "coco-hashing", "scenes-v0-good", "flickr-minilm", "flickr-columns"),
    ),
    **dict.fromkeys(("better by 5 points", "better by 15 points"), ("grammar", "flickr-hashing", "coco-hashing")),
}
"""Two models, and the worlds in which they are compared."""
MORE_SEEDS = {
    "count-blind": 2, "order-blind": 3, "weak on small objects": 4, "action-blind": 18, "text-blind": 20,
}  # fmt: skip
"""Beyond those of the others: kinds that few worlds can show are measured fifty times, too."""
ENCODED = {"flickr-minilm": 3}
"""Seeds of worlds whose captions, as edited by every probe, go through a sentence encoder: minutes for each."""


@dataclass(frozen=True)
class Case:
    """A world, a defect at a strength (empty: none), and a seed."""

    world: str
    plant: str
    strength: Any
    seed: int

    @property
    def name(self) -> str:
        return f"{self.plant or 'clean'} {self.strength if self.plant else ''} / {self.world} / {self.seed}".replace(
            "  ", " "
        )

    @property
    def kind(self) -> str:
        if self.plant in PAIRS:
            return "better" if self.plant.startswith("better") else "no-difference"
        return PLANTINGS[self.plant].kind if self.plant else ""


def cases(seeds: Sequence[int], quick: bool) -> list[Case]:
    """All of them, clean worlds first."""
    made = [Case(world, "", None, seed) for world in CONTROLS for seed in seeds]
    for planting in PLANTINGS.values():
        strengths = planting.strengths[-1:] if quick else planting.strengths
        worlds = planting.worlds[:2] if quick else planting.worlds
        more = range(len(SEEDS), len(SEEDS) + MORE_SEEDS.get(planting.name, 0)) if len(seeds) == len(SEEDS) else ()
        made += [
            Case(world, planting.name, strength, seed)
            for world in worlds for strength in strengths for seed in (*seeds, *more)
        ]  # fmt: skip
    made += [Case(world, pair, None, seed) for pair, worlds in PAIRS.items() for world in worlds for seed in seeds]
    return [case for case in made if case.world not in ENCODED or case.seed < ENCODED[case.world]]


# Worlds


@lru_cache(maxsize=24)
def clean_world(name: str, seed: int) -> World | None:
    """A world without a defect."""
    return WORLDS[name](seed)


def weaker_elsewhere(text: str, case: Case) -> bool | None:
    """Whether the group that a sentence names is weaker, too, in other worlds of this sort with this defect.

    None where such worlds differ so much from each other that this one may have an effect of its own: a model and a
    gallery at random have favourites, which is true of them and of no other.
    """
    differences, inside = [], 0
    others = [other for other in (*range(3), *range(11, 20)) if other != case.seed]
    for other in others[: 3 if "minilm" in case.world else 8]:
        population = defective(replace(case, seed=other))
        assert population is not None
        members = members_of(text, population[0])
        if members is None:
            return False
        compared = compared_with(text, population[0])
        right = image_hits(population[0]) if "i2t/" in text else hits(population[0]).astype(float)
        if np.isfinite(right[members]).sum() >= 5 and np.isfinite(right[compared]).sum() >= 5:
            inside += int(np.isfinite(right[members]).sum())
            differences.append(float(np.nanmean(right[members]) - np.nanmean(right[compared])))
    if inside < 20:
        return None
    if np.mean(differences) <= -0.01:
        return True
    return None if np.std(differences) >= 0.06 else False


def defective(case: Case) -> tuple[World, Defect | None] | None:
    """The world of a case with its defect; None where its data are absent."""
    world = clean_world(case.world, case.seed)
    if world is None or not case.plant or case.plant in PAIRS:
        return None if world is None else (world, None)
    random = random_stream(case.seed, "claims", case.plant, str(case.strength), case.world)
    defect = PLANTINGS[case.plant].plant(world, case.strength, random)
    return defect.world, defect


def planted(case: Case) -> tuple[dict[str, World], Truth] | None:
    """The models of a case, and what is true of the first; None where its data are absent."""
    made = defective(case)
    if made is None:
        return None
    world, defect = made
    if case.plant in PAIRS:
        return _pair(world, case.plant, random_stream(case.seed, "claims", case.plant, case.world))
    if defect is None:
        return {"model": world}, truth_of(world, "", None, {})
    return {"model": world}, truth_of(world, case.kind, defect.ids, defect.also)


def _pair(world: World, pair: str, random: np.random.Generator) -> tuple[dict[str, World], Truth]:
    """Two models on one dataset, on their vectors alone."""
    world = replace(world, encode=None, given=True)
    truth = truth_of(world, "", None, {})
    if pair == "the same model twice":
        truth.affected["no-difference"], truth.planted = None, "no-difference"
        return {"first": world, "second": replace(world)}, truth
    worse = (
        world.images
        + 0.15 * random.standard_normal(world.images.shape) * np.linalg.norm(world.images) / world.images.size**0.5
    )
    if pair == "equal models":
        # Two models that differ by as much noise each: neither is better, and that can rarely be proven either.
        other = (
            world.images
            + 0.15 * random.standard_normal(world.images.shape) * np.linalg.norm(world.images) / world.images.size**0.5
        )
        truth.affected["no-difference"] = None
        return {"first": replace(world, images=worse), "second": replace(world, images=other)}, truth
    points = 0.05 if "5 points" in pair and "15" not in pair else 0.15
    target, low, high = hits(world).mean() - points, 0.0, 8.0
    noise = random.standard_normal(world.images.shape) * np.linalg.norm(world.images) / world.images.size**0.5
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if hits(replace(world, images=world.images + middle * noise)).mean() > target
            else (low, middle)
        )
    truth.affected["better"], truth.planted = None, "better"
    return {"first": world, "second": replace(world, images=world.images + high * noise)}, truth


# One case


def look(worlds: Mapping[str, World]) -> Sequence[Finding]:
    """What an audit of these models says, first what it says first."""
    from claims_audit import findings_of

    return findings_of({name: world.subject() for name, world in worlds.items()})


def run_case(case: Case) -> dict[str, Any]:
    """What was said and what of it is true; the record that is kept."""
    started = time.perf_counter()
    made = planted(case)
    if made is None:
        return {"case": case.name, "absent": True}
    worlds, truth = made
    world = next(iter(worlds.values()))
    findings = look(worlds)
    said = []
    for place, finding in enumerate(findings):
        true = truth.of(finding, world)
        if true is False and finding.kind in ("group", "object-size") and not is_random(finding.text, world):
            true = weaker_elsewhere(finding.text, case)
        ids = [evidence_ids(entry) for entry in finding.evidence]
        affected = truth.affected.get(finding.kind)
        share = (
            None
            if not ids or affected is None
            else round(float(np.mean([any(i in affected for i in e) for e in ids])), 3)
        )
        said.append({
            "kind": finding.kind, "text": finding.text, "certainty": finding.certainty, "p": finding.p, "place": place,
            "effect": list(finding.effect), "true": true, "evidence": len(ids), "affected": share,
            "model": finding.model, "weight": round(float(finding.weight), 4),
        })  # fmt: skip
    return {
        "case": case.name, "world": case.world, "plant": case.plant, "strength": case.strength, "seed": case.seed,
        "kind": case.kind, "said": said, "hits": float(hits(world).mean()),
        "seconds": round(time.perf_counter() - started, 1), **dumped(truth),
    }  # fmt: skip


@lru_cache(maxsize=8)
def _digest(folders: tuple[str, ...]) -> str:
    """Of the code that a case depends on."""
    builder = hashlib.blake2b(digest_size=6)
    for folder in folders:
        pattern = "claims*.py" if folder == "reproduce" else "**/*"
        for file in sorted((ROOT / folder).glob(pattern)):
            if file.is_file() and file.suffix in (".py", ".toml", ".txt", ".csv") and file.name != "claims.py":
                builder.update(file.read_bytes())
    return builder.hexdigest()


CODE = (
    "reproduce",
    *(
        f"src/crosslens/{name}"
        for name in ("analyze", "core", "language", "perturbations", "similarity", "statistics", "storage", "values")
    ),
    "src/crosslens/audits",
)


def _record_of(case: Case) -> Path:
    """Where the record of a case is kept, for this state of the code."""
    key = hashlib.blake2b(f"{case!r}".encode(), digest_size=10).hexdigest()
    return CACHE / "cases" / _digest(CODE) / f"{key}.json"


def kept_case(case: Case) -> dict[str, Any]:
    """The record of a case, from an earlier call where the code is the same."""
    file = _record_of(case)
    if file.exists():
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return record
    try:
        record = run_case(case)
    except Exception:
        return {"case": case.name, "error": traceback.format_exc(limit=-4)}
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    part.replace(file)
    return record


def export(case: Case, folder: Path) -> list[str]:
    """Write a case as files, and a model to load where there are pictures; the words of the command that audits it."""
    made = planted(case)
    assert made is not None
    world = next(iter(made[0].values()))
    if world.scores is not None or world.encode is None or not world.pictures or world.score != "cosine":
        return ["audit", *world.write(folder)]
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for image, file in world.pictures.items():
        copy = folder / "images" / f"{image}{Path(file).suffix}"
        copy.unlink(missing_ok=True)
        copy.symlink_to(file)
    names = [f"{image}{Path(world.pictures[image]).suffix}" for image in world.dataset.image_ids]
    frame = world.dataset.images.with_columns(pl.Series("file", names))
    replace(world.dataset, images=frame, home=None).save(folder / "dataset", overwrite=True)
    (folder / "model.py").write_text(
        _MODEL.format(scripts=str(Path(__file__).parent), case=repr(case)), encoding="utf-8"
    )
    model = f"callable:{folder / 'model.py'}:model"
    return ["audit", "--dataset", str(folder / "dataset"), "--image-folder", str(folder / "images"), "--model", model]


_MODEL = """\
import hashlib, sys
sys.path.insert(0, {scripts!r})
import numpy as np
from PIL import Image
from claims import Case, planted

def key(picture):
    return hashlib.md5(picture.convert("RGB").tobytes()).hexdigest()

class Model:
    name = "planted"
    def __init__(self, world):
        self.world, self.known = world, dict(zip(world.dataset.texts, np.asarray(world.captions, np.float32)))
        self.seen = {{}}
        for row, image in enumerate(world.dataset.image_ids):
            with Image.open(world.pictures[image]) as picture:
                self.seen[key(picture)] = np.asarray(world.images[row], np.float32)
    def encode_images(self, pictures):
        return np.array([self.seen[key(picture)] for picture in pictures])
    def encode_texts(self, texts):
        new = [text for text in texts if text not in self.known]
        made = dict(zip(new, np.asarray(self.world.encode(new), np.float32))) if new else {{}}
        return np.array([self.known[text] if text in self.known else made[text] for text in texts])

model = Model(next(iter(planted({case})[0].values())))
"""


# The page


def _percent(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """As a page has it."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def precisions(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of every kind that was said: true ÷ said, over all worlds."""
    counts: dict[str, Counter[bool]] = defaultdict(Counter)
    for record in records:
        for said in record["said"]:
            if said["true"] is not None:
                counts[said["kind"]][said["true"]] += 1
    worlds = sorted({record["world"].split("-")[0] for record in records})
    where = f"worlds whose truth is known ({', '.join(worlds)}; docs/results/claims.md)"
    return {
        kind: {"value": round(count[True] / count.total(), 4), "n": count.total(), "where": where}
        for kind, count in sorted(counts.items())
    }


def judged_precision() -> dict[str, dict[str, Any]]:
    """Of the pairs on Flickr8k that are listed as worth a look and that a crowd judged, how many fit.

    A pair fits where more than half of its people say that the caption describes the photo. No φ was fitted to them.
    """
    if flickr_captions() is None:
        return {}
    dataset, people = judged_flickr(real_data())
    listed, crowd = find_missing_positives(dataset), people["crowd"]
    pairs = set(zip(listed.images.tolist(), listed.captions.tolist(), strict=True))
    judged = [pair in pairs for pair in zip(crowd.images.tolist(), crowd.captions.tolist(), strict=True)]
    fits = crowd.scores[judged] > 0.5
    if not len(fits):
        return {}
    where = "pairs on Flickr8k that a crowd judged: more than half of the people said that the caption describes it"
    return {f"missing-positives/{listed.phi}": {"value": round(float(fits.mean()), 4), "n": len(fits), "where": where}}


def page(records: Sequence[Mapping[str, Any]], absent: int, listed: Mapping[str, Mapping[str, Any]]) -> str:
    """docs/results/claims.md."""
    said: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        for entry in record["said"]:
            said[entry["kind"]].append(entry)
    by_kind = []
    for kind, entries in sorted(said.items()):
        judged = [entry for entry in entries if entry["true"] is not None]
        first = [entry for entry in judged if entry["place"] < FIRST]
        true = [sum(entry["true"] for entry in part) for part in (judged, first)]
        share = f"{100 * true[0] / len(judged):.0f} %" if judged else "–"
        by_kind.append(
            (f"`{kind}`", len(entries), _percent(true[0], len(judged)), _percent(true[1], len(first)), share)
        )
    power: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for record in records:
        if record["planted"]:
            seen = any(
                entry["kind"] == record["planted"] and entry["place"] < FIRST and entry["true"]
                for entry in record["said"]
            )
            power[record["planted"], record["plant"], str(record["strength"])].append(seen)
    found = [seen for values in power.values() for seen in values]
    false_first = sum(
        entry["true"] is False and entry["place"] < FIRST for record in records for entry in record["said"]
    )
    clean = [record for record in records if not record["planted"]]
    worlds: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in clean:
        worlds[record["world"]].append(record)
    alarms = []
    for world, audits in worlds.items():
        counts = sorted(len(record["said"]) for record in audits)
        false = Counter(
            f"`{entry['kind']}` ({entry['certainty']})"
            for record in audits
            for entry in record["said"]
            if entry["true"] is False
        )
        kinds = "; ".join(f"{kind}: {count}" for kind, count in false.items())
        alarms.append((world, len(audits), sum(counts), f"{counts[0]} to {counts[-1]}", kinds or "none"))
    confusion: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for kind in {entry["kind"] for entry in record["said"] if entry["place"] < FIRST}:
            confusion[record["planted"] or "(none)"][kind] += 1
    numbers = Counter(record["planted"] or "(none)" for record in records)
    skipped = f" {absent} planned cases were not run, or need datasets that were absent." if absent else ""
    usual = sorted({record["seed"] for record in clean})
    more = dict.fromkeys(record["plant"] for record in records if record["seed"] > usual[-1])
    notes = [f"of {world} the first {number}" for world, number in ENCODED.items() if world in worlds]
    notes += [f"more for {', '.join(more)}"] if more else []
    seeds = ", ".join(map(str, usual)) + (f" ({'; '.join(notes)})" if notes else "")
    defects: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (kind, plant, strength), seen in power.items():
        at = "" if strength == "None" else f"{strength}: "
        defects[kind, plant].append(f"{at}{_percent(sum(seen), len(seen))}")
    powers = [(f"`{kind}`", plant, "; ".join(shares)) for (kind, plant), shares in sorted(defects.items())]
    mixed = [
        (
            kind,
            numbers[kind],
            ", ".join(
                f"`{other}` {count}" for other, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            ),
        )
        for kind, counts in sorted(confusion.items())
    ]
    unjudged = sum(entry["true"] is None for record in records for entry in record["said"])
    share = 100 * sum(found) / max(1, len(found))
    lists = "".join(
        f"\nOf what `{kind}` lists for a person to look at, {100 * entry['value']:.0f} % of {entry['n']} were right "
        f"({entry['where']}).\n"
        for kind, entry in listed.items()
    )
    return f"""# What findings are worth

How often a sentence of an audit is true, and how often a defect is among its first five sentences. Made by
`make claims` from {len(records)} audits: {len(clean)} of worlds in which nothing is planted, {len(found)} of worlds
with a defect, seeds {seeds}. The defects and the oracle are others than those with which the kinds are tested.{skipped}

- **{_percent(sum(found), len(found))}** planted defects are among the first five findings ({share:.0f} %).
- **{false_first}** false findings are among the first five of all {len(records)} audits.

The worlds are a small grammar (150 images, vectors that bind facts), drawn scenes with the built-in encoder and with a
perfect and a noisy model, and captions of Flickr8k and COCO with a made image side. A finding is false where its kind
is not true of the world, or where fewer than nine of ten ids of its evidence are affected. What counts as true beside
the planted kind is counted or measured in the world itself (equal scores, vectors and captions, edits of our own), or
for a weak group in other worlds of the same sort with the same defect, or it follows from how the defect is made and is
written beside it. What could not be judged (sentences: {unjudged}) is in no count of what is true,
nor of what is false.

## Precision by kind

{table(("kind", "said", "true", "true, among the first five", "precision"), by_kind)}
{lists}
## Power by strength

In how many worlds with a defect it is among the first five, by its strength where it has one.

{table(("kind", "defect", "strength: among the first five"), powers)}

## False alarms where nothing is planted

What is true of such a world (a model that really misses something) may be said; what is false is listed.

{table(("world", "audits", "findings", "of one audit", "false"), alarms)}

## What is said where something else is planted

In how many audits a kind is among the first five, by what is planted.

{table(("planted", "audits", "said among the first five"), mixed)}
"""


def main() -> int:
    """Run the cases, print what is wrong, write the page and the precisions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="one seed, the strongest strengths, two worlds each")
    parser.add_argument("--only", default="", help="cases whose name holds this text; nothing is written")
    parser.add_argument("--case", default="", help="like --only, and every sentence is printed")
    parser.add_argument(
        "--export", type=Path, help="write the case that --case names, and print the command that audits it"
    )
    parser.add_argument(
        "--finished", action="store_true", help="write from the cases that are finished; the page says how many"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    options = parser.parse_args()
    wanted = options.only or options.case
    todo = [case for case in cases(range(1 if options.quick else options.seeds), options.quick) if wanted in case.name]
    if options.export:
        print("crosslens " + " ".join(export(todo[0], options.export)))
        return 0
    planned = len(todo)
    if options.finished:
        todo = [case for case in todo if _record_of(case).exists()]
    todo.sort(key=lambda case: (case.world, case.seed))  # a world is made once
    records: list[dict[str, Any]] = []
    progress = progress_bar()
    progress.start("audits", len(todo))
    if options.jobs == 1:
        outcomes: Iterable[dict[str, Any]] = map(kept_case, todo)
        records = [_noted(record, progress, bool(options.case)) for record in outcomes]
    else:
        with ProcessPoolExecutor(options.jobs) as pool:
            records = [
                _noted(record, progress, bool(options.case)) for record in pool.map(kept_case, todo, chunksize=4)
            ]
    progress.finish()
    failed = [record for record in records if "error" in record]
    done = [record for record in records if "said" in record]
    found = [
        any(entry["kind"] == record["planted"] and entry["place"] < FIRST and entry["true"] for entry in record["said"])
        for record in done if record["planted"]
    ]  # fmt: skip
    false_first = sum(entry["true"] is False and entry["place"] < FIRST for record in done for entry in record["said"])
    print(f"{len(done)} audits; {sum(found)} of {len(found)} planted defects among the first five; "
          f"{false_first} false findings among the first five; {len(failed)} failed")  # fmt: skip
    if not wanted and (options.finished or not options.quick) and not failed:
        listed = judged_precision()
        PAGE.write_text(page(done, planned - len(done), listed), encoding="utf-8")
        cited = dict(sorted((precisions(done) | listed).items()))
        PRECISIONS.write_text(json.dumps(cited, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}, {PRECISIONS.relative_to(ROOT)}")
    return 1 if failed or false_first else 0


def _noted(record: dict[str, Any], progress: Any, every: bool) -> dict[str, Any]:
    """Print what is false and what was missed."""
    progress.advance(1)
    if "error" in record:
        print(f"FAILED  {record['case']}\n{record['error']}", flush=True)
    for entry in record.get("said", ()):
        if every or entry["true"] is False:
            mark = {True: "true", False: "FALSE", None: "?"}[entry["true"]]
            place = f"{entry['place'] + 1}."
            print(f"{mark:6} {record['case']}: {place} [{entry['kind']}, {entry['certainty']}] {entry['text']} "
                  f"(evidence {entry['evidence']}, affected {entry['affected']})", flush=True)  # fmt: skip
    if record.get("planted") and not any(
        entry["kind"] == record["planted"] and entry["place"] < FIRST for entry in record["said"]
    ):
        print(
            f"MISSED {record['case']}: {record['planted']} (Hit@1 {record['hits']:.2f}, {record['seconds']:.0f} s)",
            flush=True,
        )
    return record


if __name__ == "__main__":
    sys.exit(main())
