"""How long the thirteen perturbations take over 25,000 captions, and how nlpaug and textattack do beside them.

    python benchmarks/perturb.py                   # COCO's captions where they are (CROSSLENS_DATA or ../shared/data)
    python benchmarks/perturb.py --captions 5000
    python benchmarks/perturb.py --beside          # without the thirteen, and so without spaCy

The first figure is from nothing: captions are tagged anew. The second takes the tags from the cache, as every later run
does. nlpaug and textattack are measured where they can be imported (pip install nlpaug textattack, in an environment of
their own if need be; their WordNet synonyms need nltk's data, too), in turns with crosslens, by processor time: both
sides then have the same neighbours on the machine. "one" is one change per caption, as crosslens makes it; "usual" is
the library's own default, which changes up to a third of the words.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import crosslens as cl
from crosslens.perturbations import BRIT_PERTURBATIONS, perturb_all

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CROSSLENS_DATA", HERE.parent / "shared" / "data"))
ROUNDS = 5
SAMPLE = 500


def captions(count: int) -> list[str]:
    """COCO's, or where they are not there, drawn scenes' captions with a number to tell them apart."""
    file = DATA / "coco_karpathy_test" / "captions.tsv.gz"
    if file.exists():
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            return [line.rstrip("\n").split("\t")[2] for line in lines][1 : count + 1]
    print("COCO's captions are not here: the golden captions, over and over")
    own = (HERE / "tests" / "perturbations" / "golden" / "captions.txt").read_text(encoding="utf-8").splitlines()
    return [f"{own[row % len(own)].rstrip('.')} {row}" for row in range(count)]


def whole(texts: list[str]) -> None:
    """All thirteen, from nothing and with cached tags."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CROSSLENS_CACHE"] = cache
        for label in ("from nothing", "tags from the cache"):
            wall, cpu = time.perf_counter(), time.process_time()
            perturb_all(BRIT_PERTURBATIONS, {str(row): text for row, text in enumerate(texts)})
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(f"thirteen × {len(texts):,} captions, {label:<20} {wall:6.1f} s ({cpu:.1f} s of this process)")


def per_caption(work: Callable[[], object], count: int) -> float:
    """Microseconds of processor time."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def nlpaug_peers() -> dict[str, tuple[str, Callable[[list[str]], object]]]:
    """Label → our perturbation, and their way."""
    import nlpaug.augmenter.char as char
    import nlpaug.augmenter.word as word

    once = {"aug_word_max": 1, "aug_char_max": 1}
    found: dict[str, tuple[str, Callable[[list[str]], object]]] = {}
    actions = {"swap": "char_swap", "delete": "missing_char", "insert": "extra_char"}
    for label, options in (("one", once), ("usual", {})):
        for action, ours in actions.items():
            found[f"nlpaug {action}, {label}"] = ours, char.RandomCharAug(action=action, **options).augment
        found[f"nlpaug keyboard, {label}"] = "nearby_char", char.KeyboardAug(**options).augment
    try:
        synonyms = word.SynonymAug(aug_src="wordnet", aug_max=1)
        synonyms.augment("A man walks his dog.")
        found["nlpaug synonym, one"] = "synonym_noun", synonyms.augment
    except (LookupError, OSError) as error:
        print(f"nlpaug's synonyms: not measured ({type(error).__name__}: nltk's data is not here)")
    return found


def textattack_peers() -> dict[str, tuple[str, Callable[[list[str]], object]]]:
    """The same for textattack."""
    from textattack import transformations
    from textattack.augmentation import Augmenter

    kinds = {
        "char_swap": transformations.WordSwapNeighboringCharacterSwap,
        "missing_char": transformations.WordSwapRandomCharacterDeletion,
        "extra_char": transformations.WordSwapRandomCharacterInsertion,
        "nearby_char": transformations.WordSwapQWERTY,
    }
    found: dict[str, tuple[str, Callable[[list[str]], object]]] = {}
    for ours, kind in kinds.items():
        augmenter = Augmenter(transformation=kind(), pct_words_to_swap=0, transformations_per_example=1)
        found[f"textattack {kind.__name__}"] = ours, augmenter.augment_many
    return found


def beside(texts: list[str]) -> None:
    """Ours and theirs in turns, the best of some rounds each."""
    for library, peers in (("nlpaug", nlpaug_peers), ("textattack", textattack_peers)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = peers()
        except ImportError as error:
            print(f"{library}: not measured, it cannot be imported ({error})")
            continue
        for label, (name, theirs) in found.items():
            ours_took, theirs_took = [], []
            for _ in range(ROUNDS):
                ours_took.append(per_caption(lambda name=name: cl.perturb(name, texts), len(texts)))  # type: ignore[misc]
                few = texts[:SAMPLE]
                theirs_took.append(per_caption(lambda few=few, theirs=theirs: theirs(few), len(few)))  # type: ignore[misc]
            ours, other = min(ours_took), min(theirs_took)
            print(f"{label:<42} {other:10.1f} µs   {name:<13} {ours:6.1f} µs   {other / ours:8.1f} ×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=int, default=25_000, help="how many captions")
    parser.add_argument("--beside", action="store_true", help="only beside the other libraries: needs no tagger")
    asked = parser.parse_args()
    texts = captions(asked.captions)
    if not asked.beside:
        whole(texts)
    beside(texts[:5_000])


if __name__ == "__main__":
    main()
