"""How long a quick audit of 1,000 images with 5,000 captions takes, stage by stage, with nothing in the cache.

    python benchmarks/audit.py
    python benchmarks/audit.py --images 200

The images are drawn scenes and the model is ``tiny``; then the same from vectors in files. Drawing is not measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import crosslens as cl
from crosslens.encode import encode_dataset, load_encoder, save_encoded
from crosslens.synth import write_scenes


def processor_seconds() -> float:
    """What this process and its children have used, which a busy machine changes less than the clock's time."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measure(what: str, folder: Path, **given: Any) -> None:
    """One audit in an empty folder with an empty cache, and the time of its stages."""
    os.environ["CROSSLENS_CACHE"] = str(folder / f"cache of {what}")
    begin, spent_before = time.perf_counter(), processor_seconds()
    audit = cl.audit(folder / "scenes", output=folder / f"audit of {what}", quick=True, notify=lambda _: None, **given)
    seconds, spent_on_all = time.perf_counter() - begin, processor_seconds() - spent_before
    stages = {result.stage: result.seconds for result in audit.results}
    listed = ", ".join(f"{stage} {spent:.1f}" for stage, spent in stages.items())
    rest = seconds - sum(stages.values())
    print(f"{what}: {seconds:.1f} s, {spent_on_all:.1f} s of processor time ({listed}; report and the rest {rest:.1f})")
    begin = time.perf_counter()
    cl.audit(folder / "scenes", output=folder / f"audit of {what}", quick=True, notify=lambda _: None, **given)
    print(f"  the same again, everything stored: {time.perf_counter() - begin:.1f} s")


def main() -> None:
    """Draw, audit with the model, audit from vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000, help="how many scenes, with five captions each")
    images = parser.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dataset = write_scenes(folder / "scenes", images, seed=7)
        print(f"{len(dataset.image_ids):,} images, {len(dataset.caption_ids):,} captions")
        measure("tiny", folder, model="tiny")
        written = save_encoded(encode_dataset(dataset, load_encoder("tiny")), folder / "vectors")
        measure("vectors", folder, image_embeddings=written["images"], caption_embeddings=written["captions"])


if __name__ == "__main__":
    main()
