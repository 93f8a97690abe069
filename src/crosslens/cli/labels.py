"""``crosslens analyze labels``: annotation problems apart from model failures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import ImageFolder

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.core.embeddings import Embeddings
    from crosslens.core.run import Run

EXAMPLES = examples(
    "crosslens analyze labels runs/clip runs/blip -o review.csv",
    "crosslens analyze labels --dataset captions.jsonl --image-folder photos",
    "crosslens analyze labels runs/clip --qrels proposed.qrels --leave-out queries.txt",
    "crosslens analyze labels --dataset captions.jsonl --apply review.csv \\",
    "    --cleaned cleaned --qrels reviewed.qrels",
)


def labels(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders of one dataset, one per model.")] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name or a path. [default: as in the recipe]")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    direction: Annotated[
        str | None, typer.Option(metavar="t2i|t2t", help="Captions ask for images, or for texts of images.")
    ] = None,
    image_folder: ImageFolder = None,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Do not open the image files.")] = False,
    image_embeddings: Annotated[
        Path | None, typer.Option(metavar="FOLDER|FILE", help="Image vectors, to find duplicates: .npy or a folder.")
    ] = None,
    no_words: Annotated[bool, typer.Option("--no-words", help="Do without the keyword filter.")] = False,
    threshold: Annotated[
        float, typer.Option(metavar="SHARE", help="Keyword filter: at least so much is named elsewhere.")
    ] = 1 / 3,
    far: Annotated[
        float, typer.Option(metavar="SHARE", help="Far: behind this share of the images in every run.")
    ] = 0.05,
    bits: Annotated[
        int, typer.Option(metavar="N", help="Same picture: hashes differ in at most N of 192 bits; -1: never.")
    ] = 6,
    cosine: Annotated[
        float, typer.Option(metavar="NUMBER", help="Same picture: vectors at least so near; 2: never.")
    ] = 0.99,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the first N labels are written.")] = None,
    show: Annotated[int, typer.Option(min=0, metavar="N", help="How many labels are printed.")] = 10,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The list: .csv, .parquet or .jsonl.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judgements with suspected pairs (grade 1), or after --apply.")
    ] = None,
    leave_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ids of the captions that are better not asked, one per line.")
    ] = None,
    apply: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read a reviewed list: do what its column verdict says.")
    ] = None,
    cleaned: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With --apply: where the cleaned dataset goes.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what stands there.")] = False,
    json: Json = False,
) -> None:
    """List labels that a person should look at, and say why.

    Captions whose words nothing else about their image bears out, that fit another image better in every run, or that
    rank far down; captions and pictures that are there twice. Of each run it says which failures are annotation
    problems and which remain the model's. A reviewed list becomes a cleaned dataset and judgements with --apply.
    """
    from crosslens.analyze.label_quality_result import check_review_name
    from crosslens.core.errors import ConflictError, UsageError

    for file in (output, qrels, leave_out, cleaned):
        if file is not None and file.exists() and not overwrite:
            raise ConflictError(f"{file} already exists", fix="choose another name, or pass --overwrite")
    if output is not None:
        check_review_name(output)
    if apply is None and cleaned is not None:
        raise UsageError("--cleaned without --apply", fix="name the reviewed list: --apply review.csv")
    opened, found = _opened(
        runs or [],
        dataset,
        reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split),
    )
    if apply is not None:
        if output or leave_out:
            raise UsageError("--output and --leave-out beside --apply", fix="use --cleaned and --qrels")
        _apply(found, apply, cleaned, qrels, overwrite=overwrite, json=json)
        return
    from crosslens.analyze.label_quality import LabelSettings, label_quality
    from crosslens.core.atomic import write_text
    from crosslens.data import write_qrels
    from crosslens.report.label_quality import label_quality_text

    settings = LabelSettings(threshold=threshold, far=far, bits=bits, cosine=cosine)
    result = label_quality(
        found,
        opened,
        pictures=None if no_pictures else _pictures(found, opened, image_folder),
        images=None if image_embeddings is None else _vectors(found, image_embeddings),
        direction=direction,
        words=not no_words,
        settings=settings,
        progress=progress(),
    )
    if output is not None:
        result.write(output, limit)
    if qrels is not None:
        write_qrels(result.relevance(limit), qrels)
    if leave_out is not None:
        write_text(leave_out, "".join(f"{one}\n" for one in result.left_out(limit)))
    written = [str(one) for one in (output, qrels, leave_out) if one is not None]
    if json:
        say_json({**result.as_dict(show), "files": written})
        return
    say(label_quality_text(result, width(), shown=show))
    if written:
        note(f"\nwritten to {' and '.join(written)}")


def _opened(folders: list[Path], dataset: str | None, options: dict[str, object]) -> tuple[dict[str, Run], Dataset]:
    """The runs under the names of their folders, and the dataset that they are of."""
    from crosslens.cli.stored import load_run
    from crosslens.core.errors import UsageError
    from crosslens.data import load_dataset
    from crosslens.explain.run_data import dataset_of

    names = [folder.name for folder in folders]
    runs = {
        name if names.count(name) == 1 else str(folder): load_run(folder)
        for name, folder in zip(names, folders, strict=True)
    }
    if dataset is not None:
        return runs, load_dataset(dataset, **options)
    if not runs:
        raise UsageError("neither runs nor a dataset", fix="name run folders, or pass --dataset")
    return runs, dataset_of(next(iter(runs.values())))


def _pictures(dataset: Dataset, runs: dict[str, Run], folder: str | None) -> dict[str, str]:
    """The files that are there; a folder that was named must hold them, others are only tried."""
    from crosslens.core.errors import InputError
    from crosslens.data.inside import outer_file
    from crosslens.data.picture_files import image_files
    from crosslens.explain.run_data import image_folder_of

    places = [image_folder_of(run) for run in runs.values()] if folder is None else [Path(folder)]
    for place in dict.fromkeys([*(one for one in places if one is not None), *([None] if folder is None else [])]):
        try:
            files = image_files(dataset, place, skip_bad=True)
        except InputError:
            if folder is not None:
                raise
        else:
            paired = zip(dataset.image_ids, files, strict=True)
            return {image: file for image, file in paired if outer_file(file).is_file()}
    return {}


def _vectors(dataset: Dataset, path: Path) -> Embeddings:
    from crosslens.core.embeddings import Embeddings
    from crosslens.data.files import read_array
    from crosslens.pipeline.sources import aligned

    if path.is_dir():
        return aligned(Embeddings.load(path), dataset.image_ids, "image")
    return aligned(read_array(path), dataset.image_ids, "image")


def _apply(
    dataset: Dataset, file: Path, cleaned: Path | None, qrels: Path | None, *, overwrite: bool, json: bool
) -> None:
    from crosslens.analyze.label_quality_review import apply_review
    from crosslens.core.errors import UsageError
    from crosslens.data import write_qrels
    from crosslens.report.label_quality import reviewed_text

    if cleaned is None and qrels is None:
        raise UsageError("--apply, and nothing to write", fix="pass --cleaned FOLDER, --qrels FILE or both")
    result = apply_review(dataset, file)
    if cleaned is not None:
        result.dataset.save(cleaned, overwrite=overwrite)
    if qrels is not None:
        write_qrels(result.relevance, qrels)
    written = [str(one) for one in (cleaned, qrels) if one is not None]
    if json:
        say_json({**result.as_dict(), "files": written})
        return
    say(reviewed_text(result))
    note(f"\nwritten to {' and '.join(written)}")
