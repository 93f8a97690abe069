"""Every figure of docs/results/explain-coco.md: why text-only retrieval over COCO captions fails.

    make reproduce-explain                          # the data: CROSSLENS_DATA, or ../shared/data
    python reproduce/explain_coco.py --write        # put the tables into the page

Caption 0 of every photo asks; the mean of the other captions' vectors stands for the photo. What is in the photos comes
from COCO's instances. Once more, 400 photos are evaluated with two text sets: caption 0 as the queries, the others as
the corpus; and explained with the corpus as evidence, and as if the queries were all that is known. Vectors and parses
are kept in crosslens' cache: a second call takes about a minute. The exit status says whether the page has the same
figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import polars as pl

import crosslens as cl
from crosslens.analyze import assess_label_quality
from crosslens.analyze.label_quality.concepts import extract_concepts
from crosslens.cli.console import progress_bar
from crosslens.core import Figure
from crosslens.core.rendering import Grid
from crosslens.encode import Cache, Encoder, TextOnly, text_only
from crosslens.explanations.overview import (
    Overview,
    concept_figure,
    explain_run,
    table_of_confusions,
    table_of_correlations,
    table_of_totals,
)
from crosslens.explanations.run_comparison import OverviewComparison, compare_overviews
from crosslens.report.forms.tables import markdown_table
from flickr8k import encoders
from pages import markdown, real_data, update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "explain-coco.md"
SETS = {"coco_val2017": ".gz", "coco_val2017_1k": ""}
TABLE = ("CA", "NonCommonSimilarity", "CE", "SD[binary]", "matched_synsets", "wrong_count")
HEADER = ("model", "CA, %", "concept similarity", "CE", "SD, %", "matched synsets, %", "wrong counts, %")
SHOWN = 12
TWO_SETS = 400
"""Photos that are evaluated with two text sets."""


def dataset_of(data: Path, name: str, suffix: str) -> cl.Dataset:
    """Captions and instances of one set."""
    folder = data / name
    return cl.load_dataset(
        "coco", captions=str(folder / f"captions.json{suffix}"), instances=str(folder / f"instances.json{suffix}")
    )


def explained(texts: TextOnly, name: str) -> Overview:
    """Text-only retrieval by one encoder, and why it fails."""
    with tempfile.TemporaryDirectory() as folder:
        run = cl.evaluate(texts, metrics=["Hit@1"], resamples=0, output=Path(folder) / name)
        return explain_run(run, texts.dataset, progress=progress_bar())


def encoded(dataset: cl.Dataset, encoder: Encoder, queries: cl.Dataset | None = None) -> TextOnly:
    """Caption 0 asks; the mean of the other captions' vectors, or of all of the corpus, stands for the photo."""
    return text_only(dataset, encoder, query=0, queries=queries, cache=Cache(), progress=progress_bar())


def two_sets_table(dataset: cl.Dataset, models: dict[str, Encoder]) -> str:
    """Queries from one text set and the corpus from another: what is known with the corpus, and without it."""
    asks = pl.int_range(pl.len()).over("image") == 0
    queries = replace(dataset, name="queries", captions=dataset.captions.filter(asks))
    corpus = replace(dataset, name="corpus", captions=dataset.captions.filter(~asks))
    columns = {}
    for model, encoder in models.items():
        texts = encoded(corpus, encoder, queries)
        run = cl.evaluate(texts, metrics=["Hit@1"], resamples=0)
        for name, known in (("queries", replace(texts.dataset, corpus=None)), ("corpus", texts.dataset)):
            columns[f"{model}, {name}"] = known_from(run, known, texts.dataset)
    rows = tuple((name, *(column[name] for column in columns.values())) for name in next(iter(columns.values())))
    return markdown(Grid(("evidence", *columns), rows, "l" + "r" * len(columns)))


def known_from(run: cl.Run, dataset: cl.Dataset, with_corpus: cl.Dataset) -> dict[str, str]:
    """Causes and the keyword filter where the dataset is all that is known."""
    overview = explain_run(run, dataset, resamples=0)
    labels = assess_label_quality(dataset, run)
    alone, full = extract_concepts(dataset), extract_concepts(with_corpus)
    rows = [dataset.caption_rows[caption] for caption in labels.table.filter(
        pl.col("reason").str.contains("words"))["caption"]]  # fmt: skip
    held = sum(bool(set(alone.agreement(row).missing) - set(full.agreement(row).missing)) for row in rows)
    (failures,) = labels.runs.to_dicts()
    causes = {
        row["cause"]: f"{row['count']:,}"
        if row["asked"] is None
        else f"{row['count']:,} of {row['asked']:,}, {row['open']:,} open"
        for row in overview.causes.to_dicts()
    }
    return {
        "failures": f"{overview.failures.height:,}",
        **causes,
        "rows of the keyword filter": f"{len(rows):,}",
        "… “only here” of a word that the corpus has": f"{held:,}",
        "failures that the keyword filter sets apart": f"{failures['words']:,}",
    }  # fmt: skip


def total_table(found: dict[str, Overview]) -> str:
    """What EXPL counts over all failures together, a pair of columns per model."""
    grids = [table_of_totals(one.metrics.to_dicts(), one.totals.to_dicts()) for one in found.values()]
    header = ("", *(f"{model}, {name}" for model, grid in zip(found, grids, strict=True) for name in grid.header[1:]))
    rows = tuple((lines[0][0], *(cell for line in lines for cell in line[1:]))
                 for lines in zip(*(grid.rows for grid in grids), strict=True))  # fmt: skip
    return markdown(Grid(header, rows, "l" + "r" * (len(header) - 1)))


def metric_table(found: dict[str, Overview], scope: str) -> str:
    """The columns of the paper's Table 3, a row per model; under it how many failures define each."""
    rows = []
    for model, one in found.items():
        own = {row["metric"]: row for row in one.metrics.filter(pl.col("scope") == scope).to_dicts()}
        rows.append((model, *(str(concept_figure(metric, own[metric])) for metric in TABLE)))
        rows.append(("… skipped", *(f"{own[metric]['undefined']:,}" for metric in TABLE)))
    return markdown(Grid(HEADER, tuple(rows), "l" + "r" * len(TABLE)))


def cause_table(found: dict[str, Overview]) -> str:
    """Causes down, models across."""
    columns = {model: {row["cause"]: row for row in one.causes.to_dicts()} for model, one in found.items()}
    causes = next(iter(columns.values()))
    rows = [
        (cause, *(text for rows in columns.values() for text in shares(rows[cause])))
        for cause in causes
    ]  # fmt: skip
    header = ("cause", *(text for model in found for text in (f"{model}, % of failures", "asked", "open", "main, %")))
    return markdown(Grid(header, tuple(rows), "l" + "r" * (len(header) - 1)))


def number_table(found: dict[str, Overview]) -> str:
    """How many failures have no cause, one, two …; a model that lacks a number has none of it."""
    columns = {model: {row["causes"]: row for row in one.cause_numbers.to_dicts()} for model, one in found.items()}
    empty = {"count": 0, "share": 0.0, "low": None, "high": None, "of_caused": 0.0}
    rows = []
    for number in range(max(map(len, columns.values()))):
        cells = [columns[model].get(number, empty) for model in found]
        texts = ((f"{row['count']:,}", str(Figure.percent(None).of_row(row, "share")),
                  f"{100 * (row['of_caused'] or 0):.1f}" if number else "") for row in cells)  # fmt: skip
        rows.append((str(number), *(text for cell in texts for text in cell)))
    header = ("causes", *(text for model in found for text in (model, "% of failures", "of caused, %")))
    return markdown(Grid(header, tuple(rows), "l" + "r" * (len(header) - 1)))


def shares(row: dict[str, float]) -> tuple[str, ...]:
    """One cause of one model."""
    asked = ("", "") if row["asked"] is None else (f"{row['asked']:,}", f"{row['open']:,}")
    return str(Figure.percent(None).of_row(row, "share")), *asked, f"{100 * row['main_share']:.1f}"


def failure_line(dataset: cl.Dataset, found: dict[str, Overview]) -> str:
    """How many queries fail."""
    parts = (
        f"{model} fails on {one.failures.height:,} ({100 * one.failures.height / one.queries.height:.1f} %)"
        for model, one in found.items()
    )
    return f"{len(dataset.image_ids):,} photos and as many queries; {', '.join(parts)}."


def compared_tables(found: OverviewComparison) -> str:
    """Causes and confusions of both, side by side."""
    shown = replace(found, first=replace(found.first, listed=SHOWN))
    return "\n\n".join(markdown_table(table) for one in shown.sections() for table in one.tables)


def tables_of(name: str, dataset: cl.Dataset, found: dict[str, Overview]) -> dict[str, str]:
    """Every block of the page that one set fills."""
    if name == "coco_val2017_1k":
        return {"1k-failures": failure_line(dataset, found)}
    tables = {
        "all-failures": failure_line(dataset, found),
        "all-metrics": metric_table(found, "all"),
        "all-informed": metric_table(found, "query"),
        "all-totals": total_table(found),
        "all-causes": cause_table(found),
        "all-numbers": number_table(found),
    }
    first, second = found.values()
    for key, one in zip(("first", "second"), (first, second), strict=True):
        tables[f"confusions-{key}"] = markdown_table(table_of_confusions(one.confusions, SHOWN))
        tables[f"correlations-{key}"] = markdown_table(table_of_correlations(one))
    tables["compared"] = compared_tables(compare_overviews(first, second))
    tables["notes"] = "\n".join(f"- {note}" for note in first.notes)
    return tables


def main() -> int:
    """Compute, print, and compare with the page or write into it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    asked = parser.parse_args()
    data = real_data("coco_val2017", "coco_val2017_1k")
    tables: dict[str, str] = {}
    for name, suffix in SETS.items():
        start = time.perf_counter()
        dataset = dataset_of(data, name, suffix)
        models = encoders()
        found = {model: explained(encoded(dataset, encoder), model) for model, encoder in models.items()}
        tables |= tables_of(name, dataset, found)
        if name == "coco_val2017_1k":
            tables["two-sets"] = two_sets_table(dataset.select(dataset.image_ids[:TWO_SETS]), models)
        print(f"\n{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return update_page(PAGE, tables, write=asked.write)


if __name__ == "__main__":
    sys.exit(main())
