"""What the adversarial perturbations do to real captions: how many they change, and the most frequent substitutions.

    make reproduce-adversarial                                         # shares, then 200 rows each, to be read by eye
    python reproduce/adversarial_table.py --name antonym --rows 400    # one of them
    python reproduce/adversarial_table.py --nouns                      # a row per substitution and noun described

The data: CROSSLENS_DATA, or ../shared/data beside the repository. Flickr8k (all five captions, and caption 0 alone, as
the shares of docs/explanation/adversarial.md count) and the COCO 5K test split. Every row has one example: dataset
text, not to be committed. The captions are parsed once and kept in crosslens' cache.

EXPL's queries may have several sentences, whose vectors are averaged. With all captions of an image as one query, which
changes where one of them does, colours and sizes come near the printed shares on COCO, whose captions EXPL uses;
antonyms do not. How much a share depends on the photos is said by those of consecutive thousands.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import crosslens as cl
from crosslens.cli.console import progress_bar
from crosslens.perturbations import Perturbed, perturb_all
from pages import real_data

PUBLISHED = {"antonym": 30.93, "antonym[any]": 30.93, "color_all": 47.04, "color_in": 47.04, "size": 30.77}
"""EXPL's shares of queries changed, in per cent, on captions of another dataset."""


def datasets(data: Path) -> dict[str, cl.Dataset]:
    """Flickr8k and COCO's 5K test split."""
    coco = cl.load_dataset(
        "plain", captions=data / "coco_karpathy_test" / "captions.tsv.gz", image_column="coco_image_id",
        caption_column="coco_caption_id", text_column="raw_caption",
    )  # fmt: skip
    return {"Flickr8k": cl.load_dataset("flickr", captions=data / "flickr8k" / "Flickr8k.token.txt"), "COCO 5K": coco}


def share(applied: Sequence[bool]) -> str:
    """How many were changed."""
    return f"{sum(applied):6,} of {len(applied):6,} = {100 * sum(applied) / len(applied):5.2f} %"


def by_caption(found: Sequence[Perturbed]) -> list[bool]:
    """Per caption, whether it was changed."""
    return [one.applied for one in found]


def by_image(dataset: cl.Dataset, found: Sequence[Perturbed]) -> list[bool]:
    """Per image, whether one of its captions was changed: a query of all its captions changes then."""
    changed = dict.fromkeys(dataset.captions["image"], False)
    for image, one in zip(dataset.captions["image"], found, strict=True):
        changed[image] |= one.applied
    return list(changed.values())


def thousands(dataset: cl.Dataset, found: Sequence[Perturbed]) -> str:
    """The least and the greatest share among consecutive thousands of images: of captions, and of all as one query."""
    images = np.asarray(dataset.caption_image) // 1000
    captions, queries = np.array(by_caption(found)), np.array(by_image(dataset, found))
    parts = range(len(queries) // 1000)
    shares = (
        [100 * captions[images == part].mean() for part in parts],
        [100 * queries[1000 * part : 1000 * (part + 1)].mean() for part in parts],
    )
    return ", ".join(f"{min(side):.2f} to {max(side):.2f} %" for side in shares)


def substitution(one: Perturbed, nouns: bool) -> tuple[str, ...]:
    """The word that went, the word that came; and the two words behind it where nouns are asked for."""
    edit = one.edits[-1]
    behind = one.original[edit.end :].split()[:2] if nouns else []
    return edit.before.lower(), edit.after.lower(), " ".join(behind).lower()


def print_table(name: str, found: list[Perturbed], rows: int, nouns: bool) -> None:
    """The most frequent substitutions, each with an example."""
    counts: Counter[tuple[str, ...]] = Counter()
    examples: dict[tuple[str, ...], str] = {}
    for one in found:
        if one.applied:
            key = substitution(one, nouns)
            counts[key] += 1
            examples.setdefault(key, one.text)
    print(f"\n{name}: {len(counts):,} different substitutions, {sum(counts.values()):,} in all")
    for key, count in counts.most_common(rows):
        before, after, behind = key
        print(f"{count:6,}  {before} → {after}{f' ({behind})' if behind else ''}  |  {examples[key]}")


def main() -> None:
    """Shares first, then a table for each perturbation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", action="append", choices=PUBLISHED, help="only this perturbation; repeatable")
    parser.add_argument("--rows", type=int, default=200, help="rows of each table")
    parser.add_argument("--nouns", action="store_true", help="tell substitutions apart by the words behind them, too")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    data = real_data("flickr8k")
    names = chosen.name or list(PUBLISHED)
    sets = datasets(data)
    results = {
        title: perturb_all(names, dataset, seed=chosen.seed, progress=progress_bar()) for title, dataset in sets.items()
    }
    for name in names:
        print(f"{name:12}  {'Flickr8k, caption 0:':32} {share(by_caption(results['Flickr8k'][name][::5]))}")
        for title, dataset in sets.items():
            found = results[title][name]
            print(f"{'':12}  {title + ', each caption:':32} {share(by_caption(found))}")
            print(f"{'':12}  {title + ', all five as one query:':32} {share(by_image(dataset, found))}")
            print(f"{'':12}  {title + ', thousands, each and all:':32} {thousands(dataset, found)}")
        print(f"{'':12}  {'EXPL, on VG∩COCO:':32} {'':6}    {'':6}   {PUBLISHED[name]:5.2f} %", flush=True)
    for name in names:
        everything = [one for found in results.values() for one in found[name]]
        print_table(name, everything, chosen.rows, chosen.nouns)


if __name__ == "__main__":
    main()
