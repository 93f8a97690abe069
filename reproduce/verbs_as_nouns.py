"""How often a caption's verb is asserted as an object: the table of docs/explanation/concept-metrics.md.

    make reproduce-verbs                           # the data: CROSSLENS_DATA, or ../shared/data
    python reproduce/verbs_as_nouns.py --write     # put the table into the page

Two samples of Flickr8k's captions were read and every object, number, colour, size and material that the explanations
assert of them was judged, as the tagger has it and with ``restore_verbs``. The first sample was read before the rules
were written, the second after. ``verbs_as_nouns.csv`` holds the judgements, by caption: words that are objects, verbs
(*runs*) and others (*snowy*), then attributes that describe the noun they are asserted of, and those that do not; the
words of a name are joined by ``_``. An assertion that is not in it, as another parser may make, is an error. The exit
status says whether the page has the same figures.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scipy.stats import binomtest

from crosslens.core.rendering import Grid
from crosslens.explanations.mentions import QueryMentions, mentions_of
from crosslens.language import parse_texts, restore_verbs
from pages import markdown, real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "concept-metrics.md"
JUDGEMENTS = Path(__file__).with_suffix(".csv")
SAMPLES = {"first": (40, 500), "second": (41, 250)}
"""The seed and the number of captions of each."""
ATTRIBUTES = ("count", "colour", "size", "material")
VERDICTS = ("nouns", "verbs", "others", "attributes", "misattached")


class Tally(NamedTuple):
    """What is asserted of one sample: pairs of a caption and a word, by the verdict on them."""

    captions: int
    pairs: dict[str, set[tuple[str, str]]]

    @property
    def objects(self) -> int:
        return sum(len(self.pairs[verdict]) for verdict in ("nouns", "verbs", "others"))

    @property
    def attributes(self) -> int:
        return len(self.pairs["attributes"]) + len(self.pairs["misattached"])


def captions_of(data: Path) -> dict[str, dict[str, str]]:
    """Per sample, the texts of its captions by their ids; no caption is in two samples."""
    with (data / "flickr8k" / "Flickr8k.token.txt").open(encoding="utf-8") as file:
        rows = [tuple(line.rstrip("\n").split("\t")) for line in file]
    samples: dict[str, dict[str, str]] = {}
    drawn: set[str] = set()
    for name, (seed, number) in SAMPLES.items():
        remaining = [row for row in rows if len(row) == 2 and row[0] not in drawn]
        samples[name] = dict(random.Random(seed).sample(remaining, number))
        drawn |= samples[name].keys()
    return samples


def judgements() -> dict[tuple[str, str], str]:
    """The verdict on every caption and word that was judged."""
    with JUDGEMENTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["caption"], word): verdict for row in rows for verdict in VERDICTS for word in row[verdict].split()}


def assertions(query: QueryMentions) -> list[str]:
    """The objects of a caption as written, and ``value>noun`` of its attributes."""
    objects = [mention.text.lower() for mention in query.of("object")]
    attributes = [f"{mention.value}>{mention.noun}" for mention in query if mention.kind in ATTRIBUTES]
    return [words.replace(" ", "_") for words in (*objects, *attributes)]


def tally(captions: dict[str, str], queries: Sequence[QueryMentions]) -> Tally:
    """The verdicts on everything that is asserted of some captions."""
    verdicts = judgements()
    pairs: dict[str, set[tuple[str, str]]] = {verdict: set() for verdict in VERDICTS}
    for caption, query in zip(captions, queries, strict=True):
        for word in assertions(query):
            if (caption, word) not in verdicts:
                raise SystemExit(f"{word!r}, asserted of {caption}, is not judged in {JUDGEMENTS.name}")
            pairs[verdicts[caption, word]].add((caption, word))
    return Tally(len(captions), pairs)


def tallies(captions: dict[str, str]) -> tuple[Tally, Tally]:
    """As the tagger has it, and with verbs restored."""
    texts = list(captions.values())
    pairs = list(zip(texts, parse_texts(texts), strict=True))
    tagged = tally(captions, [mentions_of(text, parse) for text, parse in pairs])
    return tagged, tally(captions, [mentions_of(text, restore_verbs(parse)) for text, parse in pairs])


def share(number: int, total: int) -> str:
    """A number of so many, in percent with Wilson's 95 % interval."""
    low, high = binomtest(number, total).proportion_ci(method="wilson")
    return f"{number} of {total:,}: {100 * number / total:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def table_of(samples: dict[str, tuple[Tally, Tally]]) -> str:
    """One row per sample and reading."""
    header = ("captions", "read by", "verbs among the objects", "captions with one", "attributes of a wrong noun",
              "objects lost")  # fmt: skip
    rows = []
    for tagged, restored in samples.values():
        for name, here in (("the tagger", tagged), ("with verbs restored", restored)):
            verbs, wrong = here.pairs["verbs"], here.pairs["misattached"]
            lost = len(tagged.pairs["nouns"] - here.pairs["nouns"])
            rows.append((str(here.captions), name, share(len(verbs), here.objects),
                         share(len({caption for caption, _ in verbs}), here.captions),
                         share(len(wrong), here.attributes), str(lost)))  # fmt: skip
    return markdown(Grid(header, tuple(rows), "rllllr"))


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    asked = parser.parse_args()
    samples = captions_of(real_data("flickr8k"))
    table = table_of({name: tallies(captions) for name, captions in samples.items()})
    return update_page(PAGE, {"verbs-as-nouns": f"\n{table}\n"}, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
