"""How items are encoded: one set of options for Python, recipes and every command that runs a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from crosslens.core import Notify, Options, UsageError, option, to_stderr
from crosslens.engine import Progress

if TYPE_CHECKING:
    from crosslens.encode.cache import Cache

PRECISIONS = ("fp32", "fp16", "bf16")


class StreamKeywords(TypedDict, total=False):
    """How items go through a model: the keywords that all encoding functions share."""

    cache: Cache | None
    batch_size: int | None
    precision: str
    progress: Progress | None


@dataclass(frozen=True)
class EncodeOptions(Options, group="Execution"):
    """Where a model runs, how precisely, what it may fetch, and where its vectors are kept."""

    device: str | None = option(None, "Where the model runs: cpu, cuda, cuda:1. [default: a GPU if there is one]")
    precision: str = option("fp32", "What the model computes in: fp32, fp16, bf16.", choices=PRECISIONS)
    batch_size: int | None = option(
        None, "Items encoded at once. [default: 32 images, 64 texts; on a GPU 8 times that]", minimum=1
    )
    cache: Cache | str | Path | bool | None = option(
        None,
        "Where vectors are kept. [default: $CROSSLENS_CACHE, $XDG_CACHE_HOME/crosslens or ~/.cache/crosslens]",
        switch_off="--no-cache Neither read vectors from the cache nor write them.",
    )
    offline: bool = option(False, "Never use the network: the model is a path, or in the hub's local cache.")
    image_folder: str | Path | None = option(
        None, "Where the dataset's image files are. [default: the dataset's folder, or here]"
    )
    skip_bad: bool = option(False, "Leave out images that cannot be read, instead of stopping.")
    notify: Notify = option(to_stderr, "Called with every note.", hidden=True)

    @property
    def model_device(self) -> str | None:
        """The first of several devices: ranking may use them all, a model runs on one."""
        return self.device and self.device.partition(",")[0]

    def stream(self, progress: Progress | None, *, unasked_cache: bool = True) -> StreamKeywords:
        """The keywords of encoding functions; without ``unasked_cache`` only a cache that was named is used."""
        from crosslens.encode.cache import Cache

        unused = self.cache is None and not unasked_cache
        return {
            "cache": None if unused else Cache.of(self.cache, self.notify),
            "batch_size": self.batch_size,
            "precision": self.precision,
            "progress": progress,
        }


MEAN = "mean"
"""How several texts become one vector: as the mean of their vectors."""
EACH = "each"
"""Every caption is a query of its own."""
QUERY_CAPTION = (
    "Which caption is the query in text-only retrieval: its number, from 0; with --queries also mean (all captions of "
    "an image, averaged) or each (every caption is a query)."
)
SHARED_IMAGES = "Evaluate the images that both text sets have, instead of stopping."


def query_choice(value: int | str) -> int | str:
    """The number of the query caption, ``mean`` or ``each``, from how it is written; anything else raises."""
    if value in (MEAN, EACH):
        return value
    number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    raise UsageError(
        f"query_caption is {value!r:.60}",
        fix=f"query_caption must be the number of a caption, counted from 0, or {MEAN} or {EACH}",
        option="query_caption",
    )
