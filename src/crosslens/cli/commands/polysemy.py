"""``crosslens analyze polysemy``: similar images with diverse captions, as curves, densities and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from crosslens import analyze, data, encode as encoders, engine, pipeline, values
from crosslens.analyze import ClusterOptions
from crosslens.cli.answers import check_tables, write_table
from crosslens.cli.commands.analyze import caption_sets, joined_tables
from crosslens.cli.console import print_note, progress_bar
from crosslens.cli.datasets import DATASETS, SPLIT_BY, DatasetOptions, load_datasets, picture_files
from crosslens.cli.flags import IMAGE_TEXT, Flags, IntervalOptions, Overwrite, command, output_option
from crosslens.core import Options, UsageError, option
from crosslens.encode import EncodeOptions, require_one_source
from crosslens.engine import EngineOptions

_VECTORS = "in the order of the datasets: .npy, .npz, .safetensors, .pt or a folder."


@dataclass(frozen=True)
class VectorOptions(Options, group="Input"):
    """Which vectors the datasets have: a model's, or files, one per dataset."""

    model: str | None = option(None, "The joint encoder of images and captions.")
    image_text: str | None = option(None, IMAGE_TEXT.format("a --model"))
    visual_model: str | None = option(
        None, "An image encoder that decides which images are similar. [default: --model]"
    )
    text_model: str | None = option(None, "A text encoder that compares co-captions: sentences, and words if it can.")
    image_embeddings: tuple[Path, ...] = option((), f"Instead of --model, image vectors {_VECTORS}", metavar="PATH")
    caption_embeddings: tuple[Path, ...] = option((), f"Instead of --model, caption vectors {_VECTORS}", metavar="PATH")
    visual_embeddings: tuple[Path, ...] = option(
        (), f"Instead of --visual-model, image vectors {_VECTORS}", metavar="PATH"
    )

    def check(self, datasets: int) -> None:
        """Raise unless every dataset has one source of each kind of vectors."""
        files = self.image_embeddings or self.caption_embeddings
        fix = "pass --model, or --image-embeddings and --caption-embeddings"
        require_one_source(fix, model=self.model, embeddings=list(files))
        if self.image_text is not None and self.model is None:
            raise UsageError("--image-text requires --model", fix="pass --model, or drop --image-text")
        if self.visual_model is not None and self.visual_embeddings:
            raise UsageError("both --visual-model and --visual-embeddings", fix="pass one of them")
        for name in (*(("image", "caption") if files else ()), *(("visual",) if self.visual_embeddings else ())):
            count = len(getattr(self, f"{name}_embeddings"))
            if count != datasets:
                problem = f"--{name}-embeddings must be given once per dataset: {count} for {datasets}"
                raise UsageError(problem, fix="repeat it, in the order of the datasets")


@dataclass(frozen=True)
class MeasureOptions(Options):
    """What is measured."""

    sizes: str = option("1,5,10,25,50,100", "Neighbourhood sizes R, such as 1..100.", metavar="LIST")
    approximate: bool = option(False, "Search neighbours with faiss: faster; its recall is measured and printed.")
    clusters: bool = option(False, "Cluster the images.")
    no_cider: bool = option(False, "Do not compare co-captions by CIDEr.")


@command(
    "crosslens analyze polysemy --dataset captions.jsonl \\",
    "    --model clip:openai/clip-vit-base-patch32 --image-folder photos",
    'crosslens analyze polysemy --dataset "coco captions=val2017.json" --dataset flickr.jsonl \\',
    "    --model clip:openai/clip-vit-base-patch32 --visual-model dinov2:facebook/dinov2-base --sizes 1..100 \\",
    "    --write polysemy.html",
    "crosslens analyze polysemy --dataset captions.jsonl --image-embeddings img.npy --caption-embeddings cap.npy \\",
    "    --clusters --purity-by category --write clusters.html",
    "crosslens analyze polysemy --dataset captions.jsonl --model sentence:all-MiniLM-L6-v2 --image-text mean",
    common=("visual_model", "by", "sizes", "clusters"),
)
def polysemy(
    source: Annotated[DatasetOptions, Flags(without=("dataset",))],
    vectors: VectorOptions,
    encode: EncodeOptions,
    measures: MeasureOptions,
    intervals: IntervalOptions,
    settings: ClusterOptions,
    execution: EngineOptions,
    dataset: list[str] = DATASETS,
    by: str | None = SPLIT_BY,
    show: int = option(10, "How many clusters are printed.", minimum=0),
    output: Path | None = output_option("The curves as a table: .parquet or .csv."),
    per_image: Path | None = option(None, "Every image's values: .parquet or .csv."),
    overwrite: Overwrite = False,
) -> analyze.PolysemyStudy:
    """Measure how diverse the captions of similar images are.

    For each image its R nearest images: how similar they are, and how far their captions are from the image. Several
    datasets stand side by side. Also compares the captions of one image with each other, and clusters the images.
    """
    sizes = pipeline.parse_counts(measures.sizes, "R")
    check_tables(output, per_image, overwrite=overwrite)
    vectors.check(len(dataset))
    whole = load_datasets(dataset, source)
    # A name of its own for each dataset: of several that are called the same, the path or the reader.
    names = [loaded.name for loaded in whole]
    words = [Path(word.rstrip("/")).name for word in dataset]
    distinct = values.distinct_names(
        name if names.count(name) == 1 else word for name, word in zip(names, words, strict=True)
    )
    whole = [replace(loaded, name=name) for loaded, name in zip(whole, distinct, strict=True)]
    parts = caption_sets(whole, by)
    models = _Models(vectors, encode, whole)
    for loaded in whole:  # before the long work, for each of them
        analyze.check_sizes(sizes, loaded)
    if settings.purity_by is not None and not measures.clusters:
        raise UsageError("--purity-by requires --clusters", fix="pass --clusters, or drop --purity-by")
    with engine.use_engine(execution):
        measured = tuple(
            models.measure(loaded, 0 if by else number, sizes, measures, intervals, settings)
            for number, loaded in enumerate(parts)
        )
    if output is not None:
        write_table(joined_tables({part.dataset.name: part.curves.table for part in measured}), output)
    if per_image is not None:
        write_table(joined_tables({part.dataset.name: part.per_image() for part in measured}), per_image)
    return analyze.PolysemyStudy(measured, show)


class _Models:
    """The encoders that the flags name, loaded once for all datasets."""

    def __init__(self, vectors: VectorOptions, encode: EncodeOptions, whole: Sequence[values.Dataset]) -> None:
        self._vectors, self._whole = vectors, whole
        options = replace(encode, notify=print_note)
        self._joint, self._visual, self._text = (
            None if name is None else encoders.load_encoder(name, options)
            for name in (vectors.model, vectors.visual_model, vectors.text_model)
        )
        self._image_text: Any = vectors.image_text
        if vectors.image_text not in (None, encoders.MEAN):
            self._image_text = encoders.load_summariser(str(vectors.image_text), replace(options, precision="fp32"))
        images = () if vectors.image_text is not None else (encoders.IMAGES,)
        for encoder, kinds in (
            (self._joint, (*images, encoders.TEXTS)),
            (self._visual, (encoders.IMAGES,)),
            (self._text, (encoders.TEXTS,)),
        ):
            for kind in kinds if encoder is not None else ():
                assert encoder is not None
                encoders.require_modality(encoder, kind)
        self._images: dict[str, Any] = {
            "image_folder": encode.image_folder, "skip_bad": encode.skip_bad, **options.stream(progress_bar()),
        }  # fmt: skip
        self._texts = options.stream(progress_bar())

    def measure(
        self,
        dataset: values.Dataset,
        number: int,
        sizes: Sequence[int],
        measures: MeasureOptions,
        intervals: IntervalOptions,
        settings: ClusterOptions,
    ) -> analyze.MeasuredDataset:
        """Of a dataset or a part of it, with vectors of the models or from the files of dataset ``number``."""
        vectors = self._vectors
        images = self._stored(vectors.image_embeddings, number, "image")
        captions = self._stored(vectors.caption_embeddings, number, "caption")
        visual = self._stored(vectors.visual_embeddings, number, "image")
        if self._joint is not None and self._image_text is not None:
            captions = encoders.encode_captions(dataset, self._joint, **self._texts)
            images = encoders.images_from_captions(
                dataset, self._joint, self._image_text, captions=captions, **self._texts
            )
            if silent := len(dataset.image_ids) - len(images.ids):
                print_note(f"note: {silent:,} images without captions are left out: no text stands for them")
                dataset = dataset.select(images.ids)
        elif self._joint is not None:
            encoded = encoders.encode_dataset(dataset, self._joint, **self._images)
            pipeline.note_skipped(encoded.skipped, print_note)
            dataset, images, captions = encoded.dataset, encoded.images, encoded.captions
        if self._visual is not None:
            encoded_pictures = encoders.encode_dataset(dataset, self._visual, **self._images)
            dataset, visual = encoded_pictures.dataset, encoded_pictures.images
        sentences = None if self._text is None else encoders.encode_captions(dataset, self._text, **self._texts)
        teller = self._text or self._joint
        words = None if teller is None else encoders.word_encoder(teller)
        joint: dict[str, Any] = {"images": images, "captions": captions, "progress": progress_bar()}
        curves = analyze.polysemy(
            dataset, sizes=sizes, visual=visual, approximate=measures.approximate, **joint, **vars(intervals)
        )
        further = {"sentences": sentences, "words": words, "cider": not measures.no_cider, **vars(intervals)}
        if vectors.image_text is not None:
            further["images"] = None  # they are made of the captions
        diversity = analyze.measure_caption_diversity(dataset, **(joint | further))
        if not measures.clusters:
            return analyze.MeasuredDataset(dataset, curves, diversity)
        clusters = analyze.cluster_images(dataset, visual=visual, seed=intervals.seed, **joint, **vars(settings))
        pictures = picture_files(dataset, (), self._images["image_folder"])
        return analyze.MeasuredDataset(dataset, curves, diversity, clusters, pictures)

    def _stored(self, paths: Sequence[Path], number: int, side: Literal["image", "caption"]) -> Any:
        """Vectors under their ids: a file without them is in the order of its whole dataset."""
        if not paths:
            return None
        whole = self._whole[number]
        ids = whole.image_ids if side == "image" else whole.caption_ids
        return values.align_embeddings(data.read_vectors(paths[number], side), ids, side)
