"""What ``tiny`` reaches on scenes it has never seen: the figures of its page in the documentation.

python training/tiny/held_out.py            # 1,000 scenes, their twins, a gallery of 16,000
python training/tiny/held_out.py --overlap  # and how many of their captions occur in the corpus word for word
"""

from __future__ import annotations

import argparse
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import gettempdir

from crosslens.encode import Cache, encode_dataset, load_encoder
from crosslens.pipeline import evaluate, group_metrics
from crosslens.synth.generation import VERSIONS, SceneRecipe, make_scene, select_version
from crosslens.synth.writing import write_scenes
from crosslens.values import Run

SEED = 7
CORPUS_SEED, CORPUS_SCENES = 20_000, 60_000


def main() -> None:
    """Draw, encode, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000, help="held-out scenes")
    parser.add_argument("--folder", type=Path, default=Path(gettempdir()) / "crosslens-held-out", help="for pictures")
    parser.add_argument("--overlap", action="store_true", help="compare with the captions of the training corpus")
    options = parser.parse_args()
    runs = evaluated(options.folder, options.images)
    print(f"## Overall, {options.images:,} held-out scenes (seed {SEED}), percent\n\n{overall(runs)}\n")
    print(
        f"## By task, t2i, percent\n\n{grouped(runs, 'task')}\n\n## By style, t2i, percent\n\n{grouped(runs, 'style')}"
    )
    if options.overlap:
        print(f"\n{overlap(options.images)}")


def evaluated(folder: Path, images: int) -> dict[str, Run]:
    """One run for each version."""
    drawn = write_scenes(folder, images, "all", SEED, version="v2")
    encoder, cache = load_encoder("tiny"), Cache()
    runs = {}
    for version in VERSIONS:
        dataset = select_version(drawn, version)
        encoded = encode_dataset(dataset, encoder, image_folder=folder, cache=cache)
        runs[version] = evaluate(dataset, images=encoded.images, captions=encoded.captions)
    return runs


def overall(runs: dict[str, Run]) -> str:
    """A row per version and direction."""
    rows = ["| version | direction | Hit@1 | Hit@5 | Hit@10 |", "|---|---|---|---|---|"]
    for version, run in runs.items():
        for direction in ("t2i", "i2t") if version != "v2" else ("t2i",):
            cells = (f"{100 * run[f'{direction}/Hit@{k}'].mean:.1f}" for k in (1, 5, 10))
            rows.append(f"| {version} | {direction} | {' | '.join(cells)} |")
    return "\n".join(rows)


def grouped(runs: dict[str, Run], column: str) -> str:
    """A row per group: Hit@1 of each version, and Hit@10 of the first."""
    metrics = [(version, "t2i/Hit@1") for version in VERSIONS] + [("v0", "t2i/Hit@10")]
    columns = [group_metrics(runs[version], column, metric).values[metric] for version, metric in metrics]
    rows = [
        f"| {column} | " + " | ".join(f"{metric[4:]} {version}" for version, metric in metrics) + " |",
        "|---" * (len(metrics) + 1) + "|",
    ]
    ordered = sorted(columns[0], key=lambda group: -columns[0][group].mean)
    for group in ordered:
        cells = " | ".join(f"{100 * values[group].mean:.1f}" for values in columns)
        rows.append(f"| {group} | {cells} |")
    return "\n".join(rows)


def overlap(images: int) -> str:
    """How many held-out captions the model has read before, style by style."""
    tasks = SceneRecipe.of(1, "all").tasks
    with get_context("spawn").Pool() as pool:
        read = {
            text for five in pool.imap(partial(_texts, CORPUS_SEED, tasks), range(CORPUS_SCENES), 500) for text in five
        }
        held_out = list(pool.imap(partial(_texts, SEED, tasks), range(images), 100))
    styles = [caption.style for caption in make_scene(SEED, 0, tasks).captions]
    shares = (sum(five[index] in read for five in held_out) / images for index in range(len(styles)))
    return "Captions that occur in the corpus word for word: " + ", ".join(
        f"{style} {100 * share:.1f}%" for style, share in zip(styles, shares, strict=True)
    )


def _texts(seed: int, tasks: tuple[str, ...], index: int) -> tuple[str, ...]:
    return tuple(caption.text for caption in make_scene(seed, index, tasks).captions)


if __name__ == "__main__":
    main()
