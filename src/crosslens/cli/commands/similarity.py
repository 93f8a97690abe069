"""``crosslens similarity``: φ of every image and caption, as a matrix; or of some pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.cli.console import print_json, print_list, print_note, print_result, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Json, Overwrite, Threads, command
from crosslens.core import option

if TYPE_CHECKING:
    from crosslens.core import Dataset
    from crosslens.similarity import Similarity


@command(
    "crosslens similarity --dataset captions.jsonl --phi cider -o cider.npy",
    "crosslens similarity --dataset karpathy --captions dataset_coco.json \\",
    "    --split test --phi embed-max:sentence:all-MiniLM-L6-v2 -o minilm.npy",
    "crosslens similarity --dataset captions.jsonl --phi cider \\",
    "    --pairs pairs.csv -o scores.csv",
    "crosslens similarity --list",
)
def similarity(
    source: DatasetOptions,
    phi: str = option("cider", "The similarity (see --list), or a matrix of it: .npy or .csv.", metavar="NAME|FILE"),
    df_from: str | None = option(
        None, "For cider: the dataset that document frequencies come from. [default: the dataset]", metavar="PATH"
    ),
    pairs: Path | None = option(None, "Only these: a CSV with the columns image and caption.", metavar="FILE"),
    output: Path | None = option(
        None, "The matrix (.npy); with --pairs, the scores (.csv).", metavar="FILE", flags=OUTPUT
    ),
    threads: Threads = None,
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the similarities, and nothing else.", flags=("--list",)),
    json: Json = False,
) -> None:
    """Compare every caption with every image's captions.

    The matrix has one row per image and one column per caption, in the dataset's order; N.npy.json beside N.npy holds
    the ids. Running the same command again resumes where it was interrupted.
    """
    from crosslens.core import UsageError
    from crosslens.data import load_dataset
    from crosslens.similarity import load_similarity

    if listing:
        _list(json)
        return
    suffix = ".npy" if pairs is None else ".csv"
    if output is not None and output.suffix != suffix:
        raise UsageError(f"-o {output} does not end in {suffix}", fix=f"name a file that ends in {suffix}")
    dataset = source.load()
    loaded = load_similarity(phi, **({} if df_from is None else {"df": load_dataset(df_from)}))
    if pairs is not None:
        _score_pairs(dataset, loaded, pairs, output, threads, overwrite, json)
    else:
        _score_matrix(dataset, loaded, output, threads, overwrite, json)


def _score_matrix(
    dataset: Dataset, phi: Similarity, output: Path | None, threads: int | None, overwrite: bool, json: bool
) -> None:
    from crosslens.similarity import description_file, relevance_matrix, summarise_matrix

    existed = output is not None and output.exists() and not overwrite
    matrix = relevance_matrix(
        dataset, phi, output=output, overwrite=overwrite, threads=threads, progress=progress_bar()
    )
    summary = summarise_matrix(matrix, dataset)
    written = [] if output is None else [str(output), str(description_file(output))]
    if json:
        print_json({"phi": phi.name, "revision": phi.revision, **summary.as_dict(), "written": written})
        return
    rows = [("φ", phi.name), ("images × captions", f"{summary.images:,} × {summary.captions:,}")]
    rows += [("range", f"{summary.min:.4g} to {summary.max:.4g}"), ("mean", f"{summary.mean:.4g}")]
    for label, value in (("of own captions", summary.mean_own), ("of others", summary.mean_others)):
        if value is not None:
            rows.append((f"  {label}", f"{value:.4g}"))
    print_list(rows)
    if output is not None:
        print_note(
            f"\nup to date: {output} (nothing to do)" if existed else f"\nwritten to {output}; ids in {written[1]}"
        )


def _score_pairs(
    dataset: Dataset,
    phi: Similarity,
    pairs: Path,
    output: Path | None,
    threads: int | None,
    overwrite: bool,
    json: bool,
) -> None:
    from crosslens.data import refuse_existing
    from crosslens.similarity import pairs_table, read_pairs, relevance_pairs, write_pairs

    if output is not None:
        refuse_existing(output, overwrite)
    images, captions = read_pairs(pairs, dataset)
    scores = relevance_pairs(dataset, phi, images, captions, threads=threads, progress=progress_bar())
    table = pairs_table(dataset, images, captions, scores)
    if output is not None:
        write_pairs(table, output)
    if json:
        facts: dict[str, Any] = {"phi": phi.name, "revision": phi.revision, "pairs": table.height}
        if table.height:
            facts |= {"min": float(scores.min()), "mean": float(scores.mean()), "max": float(scores.max())}
        print_json({**facts, "written": [] if output is None else [str(output)]})
    elif output is None:
        print_result(table.write_csv().rstrip("\n"))
    else:
        print_note(f"{table.height:,} pairs written to {output}")


def _list(json: bool) -> None:
    from crosslens.similarity import SIMILARITIES

    if json:
        print_json([{"name": entry.name, "summary": entry.summary, **entry.details} for entry in SIMILARITIES])
    else:
        print_list([(entry.name, entry.summary) for entry in SIMILARITIES])
