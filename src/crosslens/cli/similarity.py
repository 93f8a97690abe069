"""``crosslens similarity``: φ of every image and caption, as a matrix; or of some pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, say_list
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.similarity import Similarity

EXAMPLES = examples(
    "crosslens similarity --dataset captions.jsonl --phi cider -o cider.npy",
    "crosslens similarity --dataset karpathy --captions dataset_coco.json --split test \\",
    "    --phi embed-max:sentence:all-MiniLM-L6-v2 -o minilm.npy",
    "crosslens similarity --dataset captions.jsonl --phi cider --pairs pairs.csv -o scores.csv",
    "crosslens similarity --list",
)


def similarity(
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")
    ] = None,
    phi: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The similarity (see --list), or a matrix of it: .npy or .csv.")
    ] = "cider",
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    df_from: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="For cider: a dataset whose images n-grams are counted in. [default: the dataset]"
        ),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only these: a CSV with the columns image and caption.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The matrix (.npy); with --pairs, the scores (.csv)."),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads. [default: all cores]")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace other numbers there.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the similarities, and nothing else.")] = False,
    json: Json = False,
) -> None:
    """Compare every caption with every image's captions.

    The matrix has one row per image and one column per caption, in the dataset's order; N.npy.json beside N.npy holds
    the ids. A stopped command goes on where it was when it is given again.
    """
    from crosslens.core.errors import UsageError
    from crosslens.data import load_dataset
    from crosslens.similarity import load_similarity

    if listing:
        _list(json)
        return
    if dataset is None:
        raise UsageError("no --dataset", fix="see crosslens similarity --help")
    if output is not None and (wanted := ".npy" if pairs is None else ".csv") != output.suffix:
        raise UsageError(f"-o {output}", fix=f"name a file that ends in {wanted}")
    options = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **options)
    asked = load_similarity(phi, **({} if df_from is None else {"df": load_dataset(df_from)}))
    if pairs is not None:
        _pairs(loaded, asked, pairs, output, threads, overwrite, json)
    else:
        _matrix(loaded, asked, output, threads, overwrite, json)


def _matrix(
    dataset: Dataset, phi: Similarity, output: Path | None, threads: int | None, overwrite: bool, json: bool
) -> None:
    from crosslens.similarity import relevance_matrix
    from crosslens.similarity.description import description_file
    from crosslens.similarity.summary import summarise

    before = output is not None and output.exists() and not overwrite
    matrix = relevance_matrix(dataset, phi, output=output, overwrite=overwrite, threads=threads, progress=progress())
    found = summarise(matrix, dataset)
    written = [] if output is None else [str(output), str(description_file(output))]
    if json:
        say_json({"phi": phi.name, "revision": phi.revision, **found.as_dict(), "written": written})
        return
    rows = [("φ", phi.name), ("images × captions", f"{found.images:,} × {found.captions:,}")]
    rows += [("range", f"{found.min:.4g} to {found.max:.4g}"), ("mean", f"{found.mean:.4g}")]
    for label, value in (("of own captions", found.mean_own), ("of others", found.mean_others)):
        if value is not None:
            rows.append((f"  {label}", f"{value:.4g}"))
    say_list(rows)
    if output is not None:
        note(f"\nalready there: {output} (nothing to do)" if before else f"\nwritten to {output}; ids in {written[1]}")


def _pairs(
    dataset: Dataset,
    phi: Similarity,
    pairs: Path,
    output: Path | None,
    threads: int | None,
    overwrite: bool,
    json: bool,
) -> None:
    from crosslens.data.files import refuse_existing
    from crosslens.similarity import relevance_pairs
    from crosslens.similarity.pair_files import pairs_table, read_pairs, write_pairs

    if output is not None:
        refuse_existing(output, overwrite)
    images, captions = read_pairs(pairs, dataset)
    scores = relevance_pairs(dataset, phi, images, captions, threads=threads, progress=progress())
    table = pairs_table(dataset, images, captions, scores)
    if output is not None:
        write_pairs(table, output)
    if json:
        facts: dict[str, Any] = {"phi": phi.name, "revision": phi.revision, "pairs": table.height}
        if table.height:
            facts |= {"min": float(scores.min()), "mean": float(scores.mean()), "max": float(scores.max())}
        say_json({**facts, "written": [] if output is None else [str(output)]})
    elif output is None:
        say(table.write_csv().rstrip("\n"))
    else:
        note(f"{table.height:,} pairs written to {output}")


def _list(json: bool) -> None:
    from crosslens.similarity import SIMILARITIES

    if json:
        say_json([{"name": one.name, "summary": one.summary, **one.details} for one in SIMILARITIES])
    else:
        say_list([(one.name, one.summary) for one in SIMILARITIES])
