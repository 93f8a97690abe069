"""What nltk says about a sample of WordNet, kept as a file so that it is checked where neither nltk nor dict files are.

``python -m tests.language.golden_wordnet`` writes it anew.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tests.language.nltk_reader import missing, open_reader

FILE = Path(__file__).with_name("golden_wordnet.json")
WORDS = """
dog dogs Dog man men woman women child children mouse mice glasses glass leaves leaf wolves knives geese
feet teeth oxen sheep people buses boxes churches dishes flies babies horses skis pants us attorneys abaci
aardwolves hardrock surfboards skateboarders frisbees fire_hydrants stop_sign hot_dogs traffic_lights
run running ran runs stand standing stood sit sitting sat ride riding rode hit hitting go went gone is was were
been being has had does did made flies flying lies lying dying tied played plays playing grazing grazes
big bigger biggest tiny tinier tiniest good better best red redder large larger green greener wooden
quickly well better far further down up together xyzzy
"""


def name(reader: Any, synset: Any) -> str:
    """A name that every version of nltk reads the same: satellites are numbered among the adjectives."""
    word, part = synset.lemma_names()[0].lower(), synset.pos().replace("s", "a")
    return f"{word}.{part}.{reader._lemma_pos_offset_map[word][part].index(synset.offset()) + 1:02d}"


def all_synsets(reader: Any, part: str) -> list[Any]:
    """Those of one part of speech, satellites with the adjectives, in the order of their file."""
    offsets = {offset for parts in reader._lemma_pos_offset_map.values() for offset in parts.get(part, ())}
    return [reader.synset_from_pos_and_offset(part, offset) for offset in sorted(offsets)]


def golden(reader: Any) -> dict[str, Any]:
    """The sample: the same from the same files, whatever the version of nltk."""
    draw = random.Random(4)
    words = WORDS.split()
    pools = {part: all_synsets(reader, part) for part in "nvar"}
    kinds = 500 * ["nn"] + 300 * ["vv"] + 60 * ["aa", "nv", "va", "rr"]
    pairs = [tuple(draw.choice(pools[part]) for part in kind) for kind in kinds]
    # Pairs drawn at random are far apart: add some that are near.
    pairs += [(synset, min(synset.hypernyms())) for synset in draw.sample(pools["n"], 200) if synset.hypernyms()]
    pairs += [(synset, synset) for part in "nvar" for synset in draw.sample(pools[part], 5)]
    some = [synset for part in "nvar" for synset in draw.sample(pools[part], 60)]

    def names(synsets: Any) -> list[str]:
        return sorted(name(reader, synset) for synset in synsets)

    def antonyms(synset: Any) -> list[str]:
        return names({antonym.synset() for lemma in synset.lemmas() for antonym in lemma.antonyms()})

    return {
        "path_similarity": [
            [name(reader, a), name(reader, b), a.path_similarity(b), a.path_similarity(b, simulate_root=False)]
            for a, b in pairs
        ],
        "depth": [[name(reader, synset), synset.min_depth(), synset.max_depth()] for synset in some],
        "lemmas": [[name(reader, synset), synset.lemma_names()] for synset in some],
        # Of satellites nltk misses some counts: the two files that it joins write their heads differently.
        "uses": [
            [name(reader, synset), [x.count() for x in synset.lemmas()]] for synset in some if synset.pos() != "s"
        ],
        "relations": [
            [
                name(reader, synset),
                names(synset.hypernyms() + synset.instance_hypernyms()),
                names(synset.similar_tos()),
                names(synset.attributes()),
                antonyms(synset),
            ]
            for synset in some
        ],
        "synsets": [
            [word, part, [name(reader, synset) for synset in reader.synsets(word, part)]]
            for word in words
            for part in "nvar"
        ],
        "morphy": [[word, part, reader.morphy(word.lower(), part)] for word in words for part in "nvar"],
        "lemmatise": [
            [word, part, min(reader._morphy(word.lower(), part), key=len, default=word)]
            for word in words
            for part in "nvar"
        ],
    }


def main() -> None:
    """Write the file."""
    if why := missing():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as place:
        content = golden(open_reader(Path(place)))
    parts = (
        f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for key, rows in content.items()
    )  # one row per line, so that a change shows
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
