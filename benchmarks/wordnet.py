"""How fast the compiled WordNet is, beside nltk's reader on the same pairs.

    python benchmarks/wordnet.py

Needs nltk and the dict files of WordNet 3.0 for the comparison (apt install wordnet-base wordnet-sense-index, or
CROSSLENS_WORDNET_DICT); without them only our own figures are printed. About a minute.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosslens.language.wordnet import WordNet, load_wordnet

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the reader over dict files is a test's

LOADING = """
import time
from crosslens.language.wordnet import load_wordnet
start = time.perf_counter()
load_wordnet().synsets("dog")
print(time.perf_counter() - start)
"""


def seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """The median of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def loading() -> None:
    runs = [
        float(subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    print(f"load, to the first answer     {statistics.median(runs):8.3f} s")


def ours(wn: WordNet, left: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Pairs per second, as a matrix and pair by pair."""
    side = 2_000
    matrix = side * side / seconds(lambda: wn.path_similarities(left[:side], right[:side]))
    paired = left.size / seconds(lambda: wn.paired_path_similarities(left, right))
    return {"matrix of 2,000 × 2,000": matrix, "one list against another": paired}


def nltks(wn: WordNet, left: np.ndarray, right: np.ndarray) -> tuple[float, bool]:
    """nltk's pairs per second, its synsets already read, and whether it agrees."""
    from tests.language.nltk_reader import open_reader

    with tempfile.TemporaryDirectory() as place:
        reader = open_reader(Path(place))
        read = [[reader.synset_from_pos_and_offset(wn.part(x), wn.offset(x)) for x in side] for side in (left, right)]
        pairs = list(zip(*read, strict=True))
        values = [one.path_similarity(other) for one, other in pairs]  # reads the hypernyms, too: not timed
        took = seconds(lambda: [one.path_similarity(other) for one, other in pairs], rounds=3)
    return len(pairs) / took, bool((wn.paired_path_similarities(left, right) == np.array(values)).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3_000, help="how many pairs nltk is asked for")
    asked = parser.parse_args().pairs
    loading()
    wn = load_wordnet()
    print(f"first path, compiled or read  {seconds(lambda: wn.path_similarity('dog.n.01', 'cat.n.01'), 1):8.3f} s")
    nouns = np.flatnonzero([wn.part(row) == "n" for row in range(len(wn))])
    left, right = np.random.default_rng(0).choice(nouns, (2, 500_000))
    rates = ours(wn, left, right)

    from tests.language.nltk_reader import missing

    why = missing()
    theirs, agree = (float("nan"), True) if why else nltks(wn, left[:asked], right[:asked])
    print(f"nltk                          {theirs:14,.0f} pairs/s" if why is None else f"nltk: {why}")
    for name, rate in rates.items():
        print(f"{name:<29} {rate:14,.0f} pairs/s" + (f"   {rate / theirs:8,.0f} ×" if why is None else ""))
    if not agree:
        raise SystemExit("nltk and crosslens disagree")


if __name__ == "__main__":
    main()
