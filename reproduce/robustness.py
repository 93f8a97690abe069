"""Text-only robustness on Flickr8k: every perturbation of captions, two small sentence encoders, all tables as a page.

    make reproduce-robustness                 # the data: CROSSLENS_DATA, or ../shared/data beside the repository
    python reproduce/robustness.py --write    # put the tables into docs/results/robustness-flickr8k.md

Caption 0 of every image asks and is perturbed; the mean of the other four captions' vectors stands for the image and
stays as it is. Vectors are kept in crosslens' cache and runs in a folder (``--output``), so that a second call takes
seconds. The exit status says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import crosslens as cl
from crosslens.cli.console import progress_bar
from flickr8k import encoders
from pages import real_data

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "robustness-flickr8k.md"
HEAD = """# Robustness on Flickr8k, captions only

Written by `python reproduce/robustness.py --write` (`make reproduce-robustness` checks it); do not edit by hand.

Text-only retrieval over the 8,092 images of Flickr8k: caption 0 of every image asks, the mean of the vectors of its
other four captions stands for the image. Only the asking captions are perturbed (seed 0). Two sentence encoders, 10,000
permutations per test. Where a perturbation applies to a share of the queries only, its drop over those is the drop ÷
that share. How the tables are made and how to read them: [Measure robustness](../how-to/robustness.md).

"""

SHOWN = ("drops", "changes", "groups", "overlap", "words")
"""One seed has no spread; other tables have figures of these; and the captions are Flickr8k's, not ours to print."""


def study(captions: Path, output: Path) -> cl.Robustness:
    """Both encoders under the thirteen perturbations, the adversarial ones and those beyond."""
    dataset = cl.load_dataset("flickr", captions=captions)
    return cl.robustness(
        dataset, models=encoders(), image_text="mean", query_caption=0, perturbations="everything", seed=0,
        output=output, progress=progress_bar(),
    )  # fmt: skip


def main() -> int:
    """Print the page, or write it."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--write", action="store_true", help="write the page instead of comparing with it")
    asked.add_argument("--output", type=Path, default=Path("runs/robustness-flickr8k"), help="where runs are kept")
    options = asked.parse_args()
    captions = real_data("flickr8k") / "flickr8k" / "Flickr8k.token.txt"
    start = time.perf_counter()
    tables = replace(study(captions, options.output), shown=SHOWN).content(".md").decode()
    page = HEAD + tables.partition("\n\n")[2]  # the page has a heading of its own
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
        return 0
    print(page)
    same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
    print("every figure as on the page" if same else f"some figures differ from {PAGE}", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
