"""The commands that write, each with two results that differ: what is there before, and what replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

MODEL = """
import numpy as np

class Letters:
    revision = "1"

    def encode_texts(self, texts):
        return np.array([[1 + text.lower().count(letter) for letter in "abcdefgh"] for text in texts], np.float32)

    def encode_images(self, images):
        return np.array([np.asarray(image.resize((2, 2)), np.float32).ravel()[:8] + 1 for image in images])

class Others(Letters):
    revision = "2"

    def encode_texts(self, texts):
        return super().encode_texts(texts)[:, ::-1].copy()
"""

TRAINING = """
least_count = 1

[data]
kind = "precomp"
captions = 2

[model]
kind = "vse"
dimension = 4
word_dimension = 4

[[loss]]
kind = "triplet"

[training]
batch_size = 4
epochs = 1
"""


@dataclass(frozen=True)
class WritingCommand:
    """``old`` writes ``outputs``, and ``new`` replaces them."""

    old: str
    new: str
    outputs: tuple[str, ...] = ("out",)
    whole: bool = True
    """False: a pair of files, each of which is whole by itself."""
    grows: bool = False
    """What ``new`` brings is added to the folder, result by result: nothing in it is removed."""
    slow: bool = False


_TEXTS = "--dataset data --image-text mean"
_STUDY = f"robustness {_TEXTS} --model callable:model.py:Letters --permutations 5 --resamples 5 -o out --perturbations"
_RECOS = (
    "build recos --candidates scenes --encoder callable:model.py:Letters --k 5 --originals 3 --descriptions 2 "
    "--similar 1 --source-column task --eta 0.95 --temperature 0.01 -o out"
)
COMMANDS = {
    "evaluate": WritingCommand(
        "evaluate --dataset data --scores a.npy --resamples 5 -o out",
        "evaluate --dataset data --scores b.npy --resamples 5 -o out --overwrite",
    ),
    "encode": WritingCommand(
        "encode --dataset scenes --model callable:model.py:Letters -o out",
        "encode --dataset scenes --model callable:model.py:Others -o out --overwrite",
    ),
    "synth": WritingCommand(
        "synth --images 3 --tasks colour --workers 1 -o out",
        "synth --images 2 --tasks colour --workers 1 --seed 1 -o out --overwrite",
    ),
    "perturb": WritingCommand(
        "perturb --dataset scenes --name char_swap,blur@1 -o out",
        "perturb --dataset scenes --name char_swap,blur@1 --seed 1 -o out --overwrite",
    ),
    "perturb more": WritingCommand(
        "perturb --dataset data --name char_swap -o out",
        "perturb --dataset data --name char_swap,missing_char -o out",
    ),
    "robustness": WritingCommand(f"{_STUDY} char_swap", f"{_STUDY} char_swap --seed 1 --overwrite", slow=True),
    "robustness more": WritingCommand(f"{_STUDY} char_swap", f"{_STUDY} char_swap,missing_char", slow=True),
    "build": WritingCommand(
        _RECOS, f"{_RECOS} --copy-images --generator none --overwrite", slow=True
    ),
    "similarity": WritingCommand(
        "similarity --dataset data --phi bleu -o out.npy",
        "similarity --dataset data --phi rouge-l -o out.npy --overwrite",
        ("out.npy", "out.npy.json"),
        whole=False,
    ),
    "convert to a folder": WritingCommand(
        "data convert data out", "data convert captions.csv out --overwrite",
    ),
    "convert to a file": WritingCommand(
        "data convert data out.json --to coco", "data convert captions.csv out.json --to coco --overwrite",
        ("out.json",),
    ),
    "convert to Visual Genome": WritingCommand(
        "data convert scenes out --to visual_genome", "data convert captions.csv out --to visual_genome --overwrite",
    ),
    "export": WritingCommand(
        "export run-a --to trec -o out.run", "export run-b --to trec -o out.run --overwrite",
        ("out-i2t.run", "out-t2i.run"), whole=False,
    ),
    "report": WritingCommand(
        "report run-a -o out.html", "report run-b -o out.html --overwrite", ("out.html",),
    ),
    "explain": WritingCommand(
        "explain run-c -o out", "explain run-c --depth 6 -o out --overwrite", slow=True,
    ),
    "audit": WritingCommand(
        "audit --dataset scenes --scores c.npy --quick --resamples 5 -o out --only evaluate",
        "audit --dataset scenes --scores c.npy --quick --resamples 5 -o out --only evaluate,label-quality "
        "--overwrite", whole=False, slow=True,
    ),
}  # fmt: skip
_TRAINING = "training.toml --data features --device cpu --threads 1 -o out"
if all(find_spec(package) for package in ("torch", "safetensors")):
    COMMANDS |= {
        "train": WritingCommand(f"train {_TRAINING}", f"train {_TRAINING} --seed 1 --overwrite", slow=True),
        "sweep": WritingCommand(
            f"sweep {_TRAINING} --seeds 1", f"sweep {_TRAINING} --seeds 2", whole=False, grows=True, slow=True
        ),
    }


def make_inputs(folder: Path) -> None:
    """What the commands read."""
    import numpy as np

    import crosslens as cl
    from crosslens.pipeline import InputOptions, Recipe, run_recipe
    from crosslens.synth import write_scenes

    (folder / "model.py").write_text(MODEL)
    words = ["a", "grey", "cat", "sits", "on", "the", "old", "mat", "beside", "two", "dogs", "and", "a", "ball"]
    texts = {f"i{k}": [" ".join(words[k : k + 5 + n]) for n in range(2)] for k in range(6)}
    dataset = cl.Dataset.of(texts)
    dataset.save(folder / "data")
    (folder / "captions.csv").write_text("image,caption,text\nx,1,one cat\ny,2,two dogs\n")
    rng = np.random.default_rng(0)
    for name in "ab":
        np.save(folder / f"{name}.npy", rng.standard_normal((6, 12)).astype(np.float32))
        scores = np.load(folder / f"{name}.npy")
        cl.evaluate(dataset, scores=scores, metrics="Hit@1", resamples=5, output=folder / f"run-{name}")
    scenes = write_scenes(folder / "scenes", 8, "colour,object", seed=7, workers=1)
    np.save(folder / "c.npy", rng.standard_normal((8, scenes.captions.height)).astype(np.float32))
    recipe = Recipe(dataset=str(folder / "scenes"), inputs=InputOptions(scores=str(folder / "c.npy")))
    run_recipe(recipe, folder / "run-c")
    (folder / "training.toml").write_text(TRAINING)
    (folder / "features").mkdir()
    for split in ("train", "dev", "test"):
        np.save(folder / "features" / f"{split}_ims.npy", rng.standard_normal((6, 5)).astype(np.float32))
        (folder / "features" / f"{split}_caps.txt").write_text("\n".join(dataset.texts) + "\n")
