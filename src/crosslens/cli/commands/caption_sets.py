"""``crosslens caption-sets``: two sets of captions of the same images, one model."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from crosslens import comparisons, data, pipeline, values
from crosslens.cli.answers import wrote
from crosslens.cli.console import print_note, progress_bar
from crosslens.cli.datasets import DATASET_WORDS, load_dataset_words
from crosslens.cli.flags import Flags, Overwrite, command, output_option
from crosslens.cli.stored_runs import recorded_command
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions
from crosslens.pipeline import CaptionSetOptions

_EMBEDDINGS = (
    "vectors in the dataset's order (.npy, .npz, .safetensors, .pt, .parquet), or a folder of embeddings or of shards"
)


@dataclass(frozen=True)
class CaptionSetInputs(Options, group="Input"):
    """The two sets of captions, and what encodes them."""

    before: str = option(..., "The first captions: a dataset, or a value of --by.", metavar=DATASET_WORDS)
    after: str = option(..., "The captions to compare with them.", metavar=DATASET_WORDS)
    dataset: str | None = option(None, "With --by: the one dataset that holds both sets.", metavar=DATASET_WORDS)
    by: str | None = option(None, "The caption column whose values are the two sets.")
    model: tuple[str, ...] = option(
        (), "A model that encodes (see crosslens encode --list); of several, also the means over them.", metavar="MODEL"
    )
    image_embeddings: str | None = option(None, f"Instead of a model: {_EMBEDDINGS} (that of --before).")
    before_embeddings: str | None = option(None, f"Of --before: {_EMBEDDINGS}.", metavar="FILE")
    after_embeddings: str | None = option(None, f"Of --after: {_EMBEDDINGS}.", metavar="FILE")

    def datasets(self) -> tuple[values.Dataset, values.Dataset]:
        """The dataset with the captions before, and that with those after."""
        if (self.dataset is None) != (self.by is None):
            present, missing = ("--by", "--dataset") if self.dataset is None else ("--dataset", "--by")
            raise UsageError(f"{present} requires {missing}", fix="for two sets in one dataset pass both")
        if self.dataset is None or self.by is None:
            return load_dataset_words(self.before), load_dataset_words(self.after)
        whole = load_dataset_words(self.dataset)
        return data.captions_where(whole, self.by, self.before), data.captions_where(whole, self.by, self.after)

    def embeddings(self, before: values.Dataset, after: values.Dataset) -> dict[str, Any]:
        """The vectors of the images and of both sets; nothing where a model makes them."""
        images, first, second = self.image_embeddings, self.before_embeddings, self.after_embeddings
        flags = {"--image-embeddings": images, "--before-embeddings": first, "--after-embeddings": second}
        present = [flag for flag, file in flags.items() if file is not None]
        if not present:
            return {}
        if len(present) < len(flags):
            missing = next(flag for flag in flags if flag not in present)
            raise UsageError(f"{present[0]} requires {missing}", fix="pass all three, or --model")
        pictures, captions = pipeline.read_both(before, images, first)
        others = pipeline.read_embeddings(second, None, after.caption_ids, "caption")
        return {"images": pictures, "captions": (captions, others)}


@command(
    "crosslens synth --images 240 --seed 7 -o scenes",
    "crosslens caption-sets --dataset scenes --by style --before sparse --after detailed --model tiny",
    "crosslens caption-sets --model clip:openai/clip-vit-base-patch32 \\",
    '    --before "coco captions=captions_val2014.json" --image-folder val2014 \\',
    '    --after "fine_grained captions=coco_fg.json coco_ids=true" --shared-images',
    "crosslens caption-sets --dataset scenes --by style --before sparse --after detailed \\",
    "    --model clip:openai/clip-vit-base-patch32 --model clip:openai/clip-vit-large-patch14",
    "crosslens caption-sets --before captions.jsonl --after finer.jsonl --image-embeddings images.npy \\",
    "    --before-embeddings captions.npy --after-embeddings finer.npy --json",
    common=("by",),
)
def caption_sets(
    encode: EncodeOptions,
    options: Annotated[CaptionSetOptions, Flags(without=("granularity",))],
    inputs: CaptionSetInputs,
    metrics: str | None = option(
        None, 'Such as "Hit@1 Rsum". [default: hit rates, capped recall, ranks, DCGcm@10, Rsum]'
    ),
    no_granularity: bool = option(False, "Do not measure the captions themselves."),
    output: Path | None = output_option("Where the runs before and after go.", "FOLDER"),
    overwrite: Overwrite = False,
    wide: bool = option(False, "One row per caption set, as papers print them, without intervals."),
) -> comparisons.CaptionSets | comparisons.CaptionSetsOfModels:
    """Compare two caption sets of the same images.

    One model or several, or embeddings of both sets. Every metric before and after, in both directions, with the
    interval of the difference and a p-value, paired by image: captions have no counterparts, and may differ in number.
    Where the extra language is installed, the captions' granularity is compared, too.
    """
    first, second = inputs.datasets()
    settings = {
        **vars(options), **vars(encode), "granularity": False if no_granularity else None,
        "command": recorded_command(), "notify": print_note,
    }  # fmt: skip
    several = len(inputs.model) > 1
    compared = [
        pipeline.compare_caption_sets(
            first, second, model=model, metrics=metrics, overwrite=overwrite, progress=progress_bar(),
            output=output / re.sub(r"[^\w.-]+", "-", str(model)) if several and output is not None else output,
            **inputs.embeddings(first, second), **settings,
        )
        for model in inputs.model or (None,)
    ]  # fmt: skip
    wrote(output)
    tables = [replace(comparison, wide=wide) for comparison in compared]
    return comparisons.CaptionSetsOfModels(tuple(tables)) if several else tables[0]
