"""Changes of pictures: what each severity does to them, and how many a second are changed.

python benchmarks/perturb_images.py                     # built-in scenes, and the speed with each change
python benchmarks/perturb_images.py --folder photos/    # your own pictures in place of the scenes
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import uniform_filter

from crosslens.perturbations import IMAGE_PERTURBATIONS, SEVERITIES, perturb_picture
from crosslens.perturbations.images.changes import opened, png
from crosslens.synth import generate

ACROSS = 256
"""Pictures are compared at this shorter side, about as an encoder sees them."""


def pictures(folder: Path | None, count: int) -> dict[str, bytes]:
    if folder is None:
        return {str(scene.number): scene.png() for scene in generate(count, seed=7)}
    files = sorted(one for one in folder.iterdir() if one.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
    return {one.name: one.read_bytes() for one in files[:: max(1, len(files) // count)][:count]}


def psnr(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    error = float(((one - other) ** 2).mean())
    return 10 * np.log10(255**2 / error) if error else 99.0


def ssim(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Structural similarity of the brightness, in windows of 7 × 7 pixels."""
    x, y = (each @ [0.299, 0.587, 0.114] for each in (one, other))
    mean_x, mean_y = uniform_filter(x, 7), uniform_filter(y, 7)
    xx, yy, xy = (uniform_filter(each, 7) for each in (x * x, y * y, x * y))
    xx, yy, xy = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
    low, high = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    return float(
        ((2 * mean_x * mean_y + low) * (2 * xy + high) / ((mean_x**2 + mean_y**2 + low) * (xx + yy + high))).mean()
    )


def seen(picture: Any) -> np.ndarray[Any, Any]:
    """As an encoder sees it: RGB, reduced."""
    scale = ACROSS / min(picture.size)
    size = tuple(round(side * scale) for side in picture.size)
    return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BICUBIC), np.float64)


def severities(contents: dict[str, bytes]) -> None:
    print(f"PSNR in dB and SSIM to the unchanged picture, mean of {len(contents)}, shorter side {ACROSS}\n")
    print(f"| {'':<11} |" + "".join(f" {severity}            |" for severity in SEVERITIES))
    print("|---|" + "---|" * len(SEVERITIES))
    plain = {key: opened(content) for key, content in contents.items()}
    before = {key: seen(picture) for key, picture in plain.items()}
    for entry in IMAGE_PERTURBATIONS:
        cells = []
        for severity in SEVERITIES:
            after = {
                key: seen(perturb_picture(entry.name, picture, severity=severity, key=key))
                for key, picture in plain.items()
            }
            figures = [np.mean([compare(before[key], after[key]) for key in plain]) for compare in (psnr, ssim)]
            cells.append(f" {figures[0]:4.1f} dB, {figures[1]:.2f} |")
        print(f"| {entry.name:<11} |" + "".join(cells), flush=True)


def speed(contents: Sequence[bytes], rounds: int) -> None:
    """Each change beside plain decoding and encoding, in turns, so that a busy machine slows both."""
    print("\npictures a second with one thread, and time ÷ that of decoding the file and writing it as PNG")
    for entry in IMAGE_PERTURBATIONS:
        plain, changed = [], []
        for turn in range(rounds):
            plain.append(_seconds(lambda content, place: png(opened(content).convert("RGB")), contents))
            changed.append(
                _seconds(
                    lambda content, place, name=entry.name, turn=turn: png(
                        perturb_picture(name, opened(content), key=f"{turn} {place}")
                    ),
                    contents,
                )
            )
        ratio = float(np.median(np.array(changed) / np.array(plain)))
        print(f"  {entry.name:<12} {len(contents) / np.median(changed):6.0f}/s   × {ratio:.2f}", flush=True)


def _seconds(work: Callable[..., bytes], contents: Sequence[bytes]) -> float:
    start = time.perf_counter()
    for place, content in enumerate(contents):
        work(content, place)
    return time.perf_counter() - start


def as_jpeg(content: bytes) -> bytes:
    """Photos come as JPEG; so do the scenes here, to be decoded like them."""
    target = io.BytesIO()
    opened(content).convert("RGB").save(target, "JPEG", quality=90)
    return target.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="pictures to use in place of built-in scenes")
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    contents = pictures(given.folder, given.images)
    severities(contents)
    speed([as_jpeg(one) for one in contents.values()][:20], given.rounds)


if __name__ == "__main__":
    main()
