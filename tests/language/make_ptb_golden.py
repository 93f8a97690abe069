"""Fill ``ptb_golden.json``: what Stanford's tokenizer, as pycocoevalcap calls it, gives for the sentences in it.

    pip install pycocoevalcap        # and Java
    python tests/language/make_ptb_golden.py

To add a sentence, append it with an empty list of tokens and run this. A caption's last words can hang on the first
word of the next line there (``vitamin a.`` before ``The``), so every sentence is followed by one that begins like most
captions do.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

GOLDEN = Path(__file__).with_name("ptb_golden.json")
FOLLOWING = "The end"


def reference_tokens(texts: Sequence[str], *, apart: bool) -> list[list[str]]:
    """The tokens of each text without punctuation; ``apart`` puts a neutral line after each."""
    from pycocoevalcap.tokenizer import ptbtokenizer as reference

    lines = [line.replace("\n", " ") for text in texts for line in ((text, FOLLOWING) if apart else (text,))]
    jar = Path(reference.__file__).parent / reference.STANFORD_CORENLP_3_4_1_JAR
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "captions.txt"
        file.write_text("\n".join(lines), encoding="utf-8")
        command = ["java", "-Dfile.encoding=UTF-8", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer"]
        out = subprocess.run(
            [*command, "-preserveLines", "-lowerCase", str(file)], capture_output=True, check=True
        ).stdout.decode()
    lines_read = out.split("\n")[: len(lines)]
    # CIDEr cuts what the tokenizer prints at any white space, the no-break space inside "3 1/2" included.
    kept = [
        " ".join(w for w in line.rstrip().split(" ") if w not in reference.PUNCTUATIONS).split() for line in lines_read
    ]
    return kept[::2] if apart else kept


def main() -> None:
    """Write the file."""
    texts = [text for text, _ in json.loads(GOLDEN.read_text(encoding="utf-8"))]
    pairs = list(zip(texts, reference_tokens(texts, apart=True), strict=True))
    lines = ",\n".join(json.dumps(pair, ensure_ascii=False) for pair in pairs)
    GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
