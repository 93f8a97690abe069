"""The tables of docs/results/granularity.md: COCO's 5K test captions and Flickr8k, beside the paper's figures.

    make reproduce-granularity                    # the data: CROSSLENS_DATA, or ../shared/data
    python reproduce/granularity.py --write       # put the tables into the page

The paper measured MS-COCO and Flickr30k; Flickr8k's captions were written in the manner of Flickr30k's, so its columns
are shown beside each other, but are no reproduction. A third table counts quantifiers and depth in other ways. The exit
status says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import crosslens as cl
from crosslens.analyze import Granularity, measure_granularity as granularity
from crosslens.analyze.granularity import FEATURES
from crosslens.cli.console import progress_bar
from crosslens.core.rendering import decimal
from crosslens.language.parse import Parse
from crosslens.language.parsing import parse_texts
from pages import real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "granularity.md"
COCO = {
    "adjectives": 0.76, "complement_phrases": 1.56, "articles": 2.14, "determiners": 2.14, "quantifiers": 0.12,
    "cardinals": 0.12, "concept_depth": 7.89, "characters": 52.39, "words": 10.59, "diversity": 9.14,
}  # fmt: skip
"""The paper's MS-COCO column. Its "articles" are printed beside both readings, and so are its "quantifiers"."""
FLICKR30K = {
    "adjectives": 1.14, "complement_phrases": 1.81, "articles": 2.27, "determiners": 2.27, "quantifiers": 0.26,
    "cardinals": 0.26, "concept_depth": 7.97, "characters": 63.61, "words": 12.34, "diversity": 9.86,
}  # fmt: skip
"""The paper's Flickr30k column."""
PER_CAPTION = (
    "adjectives", "complement_phrases", "articles", "determiners", "quantifiers", "cardinals", "characters",
)  # fmt: skip
"""Features that grow with the length of a caption."""
SHORT_NOUNS = ("couple", "lot", "lots", "number", "bunch", "pair", "group")


def coco(data: Path) -> cl.Dataset:
    """The 25,000 captions of the Karpathy test split."""
    return cl.load_dataset(
        "plain", captions=data / "coco_karpathy_test" / "captions.tsv.gz", image_column="coco_image_id",
        caption_column="coco_caption_id", text_column="raw_caption",
    )  # fmt: skip


def beside(found: Granularity, printed: dict[str, float], column: str, *, per_word: bool = False) -> str:
    """Own means beside printed ones, with the relative difference; of counts also the one per word."""
    estimates = found.estimates()
    more = (" difference per word |", "---|") if per_word else ("", "")
    lines = [f"| feature | here | {column} | difference |{more[0]}", f"|---|---|---|---|{more[1]}"]
    for feature, words in FEATURES.items():
        one = estimates[feature]
        cells = [words, f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"]
        paper = printed.get(feature)
        cells += ["–", ""] if paper is None else [f"{paper:.2f}", percent(one.mean / paper)]
        if per_word:
            length = found["words"] / printed["words"]
            cells.append(percent(one.mean / paper / length) if paper is not None and feature in PER_CAPTION else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def percent(ratio: float) -> str:
    """How far a ratio is from 1."""
    return f"{decimal(100 * (ratio - 1), 1, signed=True)} %"


def nominal(parse: Parse) -> int:
    """Nouns that quantify what follows: a couple of dogs."""
    return sum(
        word.lower() in SHORT_NOUNS and following.lower() == "of"
        for word, following in zip(parse.words, parse.words[1:], strict=False)
    )


def attached(parse: Parse) -> int:
    """Numbers that hang on a noun."""
    return sum(arc == "nummod" for arc in parse.arcs)


def to_nouns(parse: Parse) -> int:
    """Prepositional phrases that hang on a noun."""
    phrases = {head for arc, head in zip(parse.arcs, parse.heads, strict=True) if arc == "pobj"}
    return sum(parse.pos[parse.heads[one]] in ("NOUN", "PROPN", "PRON") for one in phrases)


def other_ways(sets: dict[str, tuple[cl.Dataset, Granularity]]) -> str:
    """What quantifiers and complement phrases come to if they are counted otherwise."""
    counts: dict[str, Callable[[Parse], int]] = {
        "numbers that modify a noun (`nummod`)": attached,
        "*a couple of*, *a lot of*, *a group of* …": nominal,
        "complement phrases that hang on a noun only": to_nouns,
    }
    means: dict[str, list[float]] = {
        "quantifiers, as settled": [found["quantifiers"] for _, found in sets.values()],
        "cardinal numbers (`cardinals`)": [found["cardinals"] for _, found in sets.values()],
    }
    for dataset, _ in sets.values():
        parses = list(parse_texts(dataset.texts))
        for words, count in counts.items():
            means.setdefault(words, []).append(float(np.mean([count(one) for one in parses])))
    lengths = [
        printed["words"] / found["words"]
        for (_, found), printed in zip(sets.values(), (COCO, FLICKR30K), strict=True)
    ]  # fmt: skip
    scaled = [one * length for one, length in zip(means["cardinal numbers (`cardinals`)"], lengths, strict=True)]
    means["cardinal numbers, scaled to as many words as the paper's captions have"] = scaled
    lines = ["| counted | COCO 5K | Flickr8k |", "|---|---|---|"]
    lines += [f"| {words} | {first:.3f} | {second:.3f} |" for words, (first, second) in means.items()]
    lines += ["| the paper's quantifiers (MS-COCO, Flickr30k) | 0.12 | 0.26 |"]
    return "\n".join(lines)


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    data = real_data("coco_karpathy_test", "flickr8k")
    datasets = {
        "coco": coco(data),
        "flickr8k": cl.load_dataset("flickr", captions=data / "flickr8k/Flickr8k.token.txt"),
    }
    sets = {name: (one, granularity(one, progress=progress_bar())) for name, one in datasets.items()}
    tables = {
        "coco": beside(sets["coco"][1], COCO, "paper, MS-COCO"),
        "flickr8k": beside(sets["flickr8k"][1], FLICKR30K, "paper, Flickr30k", per_word=True),
        "other-ways": other_ways(sets),
    }
    return update_page(PAGE, {name: f"\n{table}\n" for name, table in tables.items()}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
