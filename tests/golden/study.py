"""What commands are called on: drawn scenes, runs of three models, and what other commands made of them.

Parts are prepared once for all processes that test. Calls work in a copy, made of hard links, and no call sees what
another one wrote: a copy in which more than the cache has changed is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.cli import main

WRITABLE = (".sqlite", ".sqlite-wal", ".sqlite-shm")
"""Files that are changed in place: they are copied."""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Printed:
    """What a call printed, and its exit code."""

    code: int
    out: str
    err: str


def call(words: str | list[str], folder: Path, columns: int | None = None, *, colour: bool = False) -> Printed:
    """Run ``crosslens`` in a folder, on a terminal of so many columns or into a pipe."""
    listed = shlex.split(words) if isinstance(words, str) else words
    out, err = io.StringIO() if columns is None else _Terminal(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CROSSLENS_DATA", "CROSSLENS_API_KEY", "COLUMNS", "LINES", "NO_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in (("CROSSLENS_CACHE", str(folder / "cache")), ("LOGNAME", "typist"), ("TZ", "UTC")):
            patch.setenv(name, value)
        if columns is not None:
            patch.setenv("COLUMNS", str(columns))
        if not colour:
            patch.setenv("NO_COLOR", "1")
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["crosslens", *listed])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(listed)
    return Printed(code, out.getvalue(), err.getvalue())


def _do(words: str, folder: Path) -> None:
    done = call(words, folder)
    assert done.code == 0, f"{words}\n{done.err}"


# Parts


def _scenes(folder: Path) -> None:
    """Scenes, and runs of the built-in encoder and of two worse ones: its vectors with noise."""
    _do("synth --images 24 --seed 7 --workers 1 -o scenes", folder)
    _do("synth --images 12 --seed 3 --workers 1 -o few", folder)
    _do("encode --model tiny --dataset scenes -o vectors", folder)
    random = np.random.default_rng(0)
    for name, noise in (("noisy", 0.12), ("noisier", 0.18)):
        for part in ("images", "captions"):
            vectors = cl.Embeddings.load(folder / "vectors" / part)
            values = np.asarray(vectors.vectors, dtype=np.float64)
            noisy = (values + noise * random.standard_normal(values.shape)).astype(np.float32)
            cl.Embeddings(vectors.ids, noisy, model=name).save(folder / name / part)
    _do("evaluate --dataset scenes --model tiny --resamples 100 -o runs/tiny", folder)
    for name in ("noisy", "noisier"):
        vectors = f"--image-embeddings {name}/images --caption-embeddings {name}/captions"
        _do(f"evaluate --dataset scenes {vectors} --resamples 100 -o runs/{name}", folder)
    _do("evaluate --dataset few --model tiny --resamples 100 --name tiny -o runs/few", folder)


def _tables(folder: Path) -> None:
    """Tables beside the scenes: judgements, pairs, levels of difficulty, titles, lists of other programs."""
    dataset = cl.load_dataset(folder / "scenes")
    random = np.random.default_rng(1)
    images, captions = list(dataset.image_ids), list(dataset.caption_ids)
    image_of_caption = [images[row] for row in dataset.caption_image]
    rows = random.choice(len(captions), 30, replace=False)
    pairs = [
        (image_of_caption[row] if n % 2 else images[(n * 5) % len(images)], captions[row]) for n, row in enumerate(rows)
    ]
    scores = [float(random.integers(3, 6) if n % 2 else random.integers(0, 4)) for n in range(len(pairs))]
    table = pl.DataFrame(pairs, schema=["image", "caption"], orient="row")
    table.write_csv(folder / "pairs.csv")
    table.with_columns(score=pl.Series(scores)).write_csv(folder / "judgements.csv")
    texts = dict(zip(captions, dataset.texts, strict=True))
    rejected = [(images[(n * 7 + 3) % len(images)], texts[captions[n * 4]]) for n in range(20)]
    pl.DataFrame(rejected, schema=["image", "text"], orient="row").write_csv(folder / "rejected.csv")
    (folder / "titles.txt").write_text(
        "A dog runs on the beach | Free Stock Photo\nIMG_2041.JPG\nBuy now! 50% off https://example.org/sale\n"
        "Two children play football in the park\nA dog runs on the beach\nan old man reads a newspaper &amp; smokes\n"
        "Ein Hund läuft am Strand entlang und bellt\n#sunset #love #nofilter\nA red bus stops at the corner (Getty)\n",
        encoding="utf-8",
    )
    _do("analyze difficulty --runs runs/tiny runs/noisy runs/noisier --calibration self -o difficulty.parquet", folder)
    _do("export runs/tiny --to trec -o lists/none.run", folder)
    _do("export runs/noisy --to trec -o lists/char_swap.run", folder)
    _do("data convert scenes captions.jsonl", folder)
    _do("analyze labels runs/tiny runs/noisy --no-pictures -o review.csv", folder)
    review = pl.read_csv(folder / "review.csv", infer_schema=False)
    verdicts = pl.Series("verdict", ["remove" if n % 2 else "keep" for n in range(review.height)])
    review.with_columns(verdicts).write_csv(folder / "review.csv")


def _studies(folder: Path) -> None:
    """Robustness: two studies, of one and of two models."""
    names = "char_swap,synonym_noun,shuffle_trigrams,blur@3"
    common = "--metrics 'Hit@1 MRR Rsum' --permutations 200 --resamples 50"
    _do(f"robustness --dataset scenes --model tiny --perturbations {names} {common} -o runs/rob", folder)
    _do(f"robustness --dataset few --model tiny --perturbations {names} {common} --seeds 2 -o runs/rob-few", folder)


def _judging(folder: Path) -> None:
    """A project that two people judged, whose owner decided one item, and a second one without judgements."""
    from tests.web.judging.samples import two_people_judge

    _do("judging new 'Failures of noisy' --task failures", folder)
    _do("judging import 1 runs/noisy --limit 12", folder)
    _do("judging new Pairs --task pairs", folder)
    two_people_judge(folder / "runs" / "judging.sqlite")


def _training(folder: Path) -> None:
    """A trained model and a finished sweep."""
    from tests.train.conftest import SMALL_RECIPE, made_data, write_flickr8k

    write_flickr8k(folder / "flickr8k", made_data())
    (folder / "small.toml").write_text(SMALL_RECIPE)
    _do("train small.toml --data flickr8k --device cpu --threads 1 -o models/small", folder)
    _do("sweep small.toml --data flickr8k --device cpu --set loss=triplet,sam-random --seeds 2 -o sweeps/loss", folder)


IMP = (
    "build imp --images photos --pool captions.parquet --pool-images scenes --encoder tiny --sampling full "
    "--no-compare-sampling --count 5 --band 0.0 0.99 --cluster-sizes 2 20 --candidates 6 --captions 3 "
    "--minimum-words 3 --languages any --no-tagging -o bench/imp"
)
RECOS = (
    "build recos --candidates scenes --encoder tiny --k 8 --originals 8 --descriptions 3 --similar 2 "
    "--source-column task --temperature 0.05"
)


def _builds(folder: Path) -> None:
    """An IMP benchmark whose sheets are filled in, and one that waits for them."""
    dataset = cl.load_dataset(folder / "scenes")
    files = dict(dataset.images.select("image", "file").iter_rows())
    (folder / "photos").mkdir()
    for image in dataset.image_ids[:8]:
        shutil.copy(folder / "scenes" / files[image], folder / "photos" / Path(files[image]).name)
    pool = dataset.captions.filter(pl.col("image").is_in(list(dataset.image_ids[8:])))
    pool.select("text", pl.col("image").replace_strict(files)).write_parquet(folder / "captions.parquet")
    _do(IMP, folder)
    shutil.copytree(folder / "bench" / "imp", folder / "bench" / "waiting")
    for sheet, odd in (("annotate-1.csv", 7), ("annotate-2.csv", 5), ("agree.csv", 4)):
        _do(IMP, folder)
        table = pl.read_csv(folder / "bench" / "imp" / sheet, infer_schema=False)
        verdicts = ["bad" if row % odd == 3 else "good" for row in range(table.height)]
        table.with_columns(verdict=pl.Series(verdicts)).write_csv(folder / "bench" / "imp" / sheet)
    _do(IMP, folder)


def _audits(folder: Path) -> None:
    _do("audit --dataset scenes --model tiny --quick -o audits/tiny", folder)


def _demos(folder: Path) -> None:
    _do("demo --images 12 -o demo", folder)


PARTS: dict[str, Callable[[Path], None]] = {
    "scenes": _scenes,
    "tables": _tables,
    "studies": _studies,
    "judging": _judging,
    "training": _training,
    "builds": _builds,
    "audits": _audits,
    "demos": _demos,
}
"""Each is prepared in a copy of what it needs, and holds all of that."""
NEEDS = {"tables": "scenes", "studies": "tables", "judging": "tables", "builds": "scenes", "audits": "scenes"}
BOUND = ("audits", "demos")
"""Parts that are resumed only where they were made: an audit is another one if its dataset lies elsewhere."""


class Study:
    """The prepared parts, below one folder that all processes share, and copies of them that are this process's own."""

    def __init__(self, root: Path, copies: Path) -> None:
        self.root, self.copies = root, copies
        self._states: dict[Path, list[tuple[str, int, int]]] = {}

    def part(self, name: str) -> Path:
        """The folder of a part, prepared by the first who asks."""
        folder, needed = self.root / name, None if name not in NEEDS else self.part(NEEDS[name])
        with self._locked(name):
            if not folder.exists():
                working = self._place(name)
                shutil.rmtree(working, ignore_errors=True)
                _copy(needed, working)
                PARTS[name](working)
                working.rename(folder)
        return folder

    @contextlib.contextmanager
    def copy(self, part: str) -> Iterator[Path]:
        """A copy to work in: of this process, or where the part was made if what it holds is bound to that place."""
        source = self.part(part) if part else None
        bound = part in BOUND
        folder = self._place(part) if bound else self.copies / (part or "nothing")
        with self._locked(part) if bound else contextlib.nullcontext():
            if bound:
                shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                _copy(source, folder)
                self._states[folder] = _state(folder)
            (folder / "out").mkdir()
            unchanged = False
            try:
                yield folder
                shutil.rmtree(folder / "out")
                unchanged = not bound and _state(folder) == self._states[folder]
            finally:
                if not unchanged:
                    shutil.rmtree(folder)

    def _place(self, part: str) -> Path:
        return self.root / f"{part}-place"

    @contextlib.contextmanager
    def _locked(self, part: str) -> Iterator[None]:
        self.root.mkdir(exist_ok=True)
        with (self.root / f"{part}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _copy(source: Path | None, target: Path) -> None:
    if source is None:
        target.mkdir(parents=True)
    else:
        shutil.copytree(source, target, copy_function=_link)


def _state(folder: Path) -> list[tuple[str, int, int]]:
    """What lies in a folder, without the cache, which changes how long a call takes and nothing else."""
    versions = []
    for place, folders, files in os.walk(folder):
        if place == str(folder) and "cache" in folders:
            folders.remove("cache")
        versions += [(f"{place}/", 0, 0), *((file, *_version(f"{place}/{file}")) for file in files)]
    return sorted(versions)


def _version(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_ino, status.st_mtime_ns


def _link(source: str, target: str) -> None:
    if source.endswith(WRITABLE):
        shutil.copy2(source, target)
    else:
        os.link(source, target)
