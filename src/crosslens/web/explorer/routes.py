"""All addresses of the explorer: its pages, and below ``/api`` the same values as JSON, for scripts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal
from urllib.parse import quote

import polars as pl
from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from crosslens.comparisons import SETS, Comparison, compare
from crosslens.core import CrosslensError, InputError, Link, QueryCards, Section, Table, UsageError
from crosslens.explanations import DatasetObjects, Explanation, explain_queries
from crosslens.language import find_pipeline, load_wordnet
from crosslens.metrics import metric_figure
from crosslens.report import EmbeddedImage
from crosslens.storage import json_form
from crosslens.values import IMAGE_TO_TEXT, TEXT_TO_IMAGE, split_name
from crosslens.web.background import RecentCache
from crosslens.web.explorer.queries import (
    LikelyPositives,
    LikelyPositiveSearch,
    QueryList,
    QueryRow,
    QueryView,
    RunResult,
    perturbations_of,
    query_section,
    shown_facts,
)
from crosslens.web.explorer.retrieval import (
    NEAREST,
    ORDER,
    RANDOM,
    RANK,
    SUREST,
    QueryFilter,
    QueryTables,
    directions_of,
)
from crosslens.web.explorer.runs import RunFilter, ServedDataset, comparable, comparable_runs, run_list
from crosslens.web.pages import address, feature_router, query_address, render, sections_html
from crosslens.web.security import Services

Words = Annotated[str, Query(max_length=500)]
Name = Annotated[str, Query(max_length=2000)]
Offset = Annotated[int, Query(ge=0, le=100_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]
TopK = Annotated[int, Query(ge=1, le=100)]
Others = Annotated[list[str] | None, Query(alias="with", max_length=16)]
Where = Annotated[list[Name] | None, Query(max_length=16, description="Such as kind=odd; may be repeated.")]
OutcomeFilter = Literal["", "failed", "hit", "2-5", "6-10", "11-"]
SideFilter = Literal["", "only_this", "only_other", "both", "neither"]
_PAGE, _IMAGES, _WRONG, _RUNS = 25, 24, 10, 8
_ORDERS = {SUREST: "surest mistakes", NEAREST: "nearest misses", RANDOM: "at random", ORDER: "in order"}
_STRIP = 4
"""Items shown beside each query of a list."""
_MOST_RELEVANT, _SIDE_BY_SIDE = 12, 4
_MANY_VALUES, _PERMUTATIONS, _FEW = 200_000, 10_000, 1_000


def _chosen_queries(
    search: Words = "", sort: Name = SUREST, descending: bool = False, where: Where = None,
    outcome: OutcomeFilter = "", against: Name = "", side: SideFilter = "",
) -> QueryFilter:  # fmt: skip
    return QueryFilter(search, sort, descending, tuple(where or ()), outcome, against, side)


def _chosen_runs(
    dataset: Name = "", name: Words = "", metric: Words = "", sort: Name = "", descending: bool = True
) -> RunFilter:
    return RunFilter(dataset, name, metric, sort, descending)


Chosen = Annotated[QueryFilter, Depends(_chosen_queries)]
ChosenRuns = Annotated[RunFilter, Depends(_chosen_runs)]


def routers(services: Services) -> list[APIRouter]:
    """The explorer on these services. A page that shows what an address of the JSON answers asks that address."""
    services.navigation += [("/", "Runs"), ("/datasets", "Datasets")]
    api = feature_router(prefix="/api", tags=["explorer"])
    pages = feature_router(include_in_schema=False, responses=None, default_response_class=HTMLResponse)
    tables = QueryTables(services)
    for add in (_add_runs, _add_queries, _add_explanations, _add_datasets):
        add(api, pages, tables)
    return [api, pages]


def pictures_at(
    services: Services, dataset: str, images: Iterable[str | None], size: int = 160
) -> dict[str, EmbeddedImage]:
    """The addresses of these images' pictures, where there are any."""
    addresses = {}
    for image in dict.fromkeys(images):
        if image is not None and dataset:
            path = f"/pictures/{quote(dataset, safe='')}/{quote(image, safe='')}?size={size}"
            with suppress(CrosslensError, OSError):  # there is no picture
                addresses[image] = EmbeddedImage(path, *services.pictures.size(dataset, image))
    return addresses


def _add_runs(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library = tables.library
    comparisons: RecentCache[Comparison] = RecentCache(32)

    def compared(baseline: str, other: str, metric: str) -> Comparison:
        """Two runs on the metrics that they share and that contain a word of ``metric``.

        Large runs are tested with fewer permutations, so that a page does not take minutes: the notes say how many.
        """
        if baseline == other:
            raise UsageError("a run is compared with itself", fix="choose two different runs")
        words = metric.lower().split() or [""]
        first, second = (
            replace(run, values={name: run[name] for name in run if any(word in name.lower() for word in words)})
            for run in map(library.run, (baseline, other))
        )
        size = sum(len(first[name].values) for name in first if name in second.values)
        permutations = _PERMUTATIONS if size <= _MANY_VALUES else _FEW
        key = (baseline, other, library.summary(baseline).signature, library.summary(other).signature, metric)
        return comparisons.get(key, lambda: compare(first, second, permutations=permutations))

    @api.get("/runs")
    def runs(filters: ChosenRuns) -> dict[str, Any]:
        """All runs in the folder; damaged ones have a ``problem``."""
        return run_list(library.runs(), filters).as_dict()

    @pages.get("/")
    def runs_page(request: Request, filters: ChosenRuns) -> HTMLResponse:
        listed = run_list(library.runs(), filters)
        return render(
            request, "explorer/runs.html", listed=listed, filters=filters, article=sections_html(listed.sections()),
            comparable=comparable_runs(listed.runs),
        )  # fmt: skip

    @api.get("/runs/{run}")
    def run_summary(run: str) -> dict[str, Any]:
        """A run with all its metrics."""
        return library.summary(run).as_dict()

    @api.get("/comparison")
    def comparison(baseline: Name, other: Name, metric: Words = "") -> dict[str, Any]:
        """Two runs on the same queries, as ``crosslens compare --json`` prints it: differences, intervals, tests."""
        content = compared(baseline, other, metric).as_dict()
        return {**content, "metrics": content["comparisons"]}

    @pages.get("/compare")
    def compare_page(
        request: Request, run: Annotated[list[str] | None, Query(max_length=16)] = None, metric: Words = ""
    ) -> HTMLResponse:
        pair = list(dict.fromkeys(run or ()))
        if len(pair) != 2:
            raise UsageError(f"{len(pair)} runs are chosen", fix="Go back and choose two different runs.")
        baseline, other = pair
        result = compared(baseline, other, metric)

        def to(run: str, target: str) -> str:
            """The page of a query, or of the queries that one of the runs finds, both or neither."""
            sides = dict(zip(SETS, ("only_other", "only_this", "both", "neither"), strict=True))
            state = {"direction": direction, "against": baseline}
            if target in sides:
                return address(f"/runs/{quote(other, safe='')}", {**state, "side": sides[target]})
            return query_address(other, target, {"with": baseline, "direction": direction})

        direction = split_name(next(entry.metric for entry in result.results if entry.primary))[0]
        images = [image for paired in result.paired.values() for image in paired.images]
        pictures = pictures_at(tables.services, library.summary(baseline).dataset, images)
        answer, *evidence = result.sections(to)
        return render(
            request, "explorer/compare.html", result=result, verdict=answer.title, runs=pair, metric=metric,
            article=sections_html([replace(answer, title=""), *evidence], pictures),
        )  # fmt: skip


def _add_queries(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library, likely = tables.library, LikelyPositiveSearch(tables)

    @api.get("/runs/{run}/queries")
    def queries(
        run: str, filters: Chosen, direction: Name | None = None, offset: Offset = 0, limit: Limit = 50
    ) -> QueryList:
        """A page of the queries of a run."""
        retrieval = tables.retrieval(run, direction)
        other = tables.retrieval(filters.against, retrieval.direction) if filters.against else None
        matching = retrieval.select(filters, other)
        figure = retrieval.figure(matching)
        rows = []
        for row in map(int, matching[offset : offset + limit]):
            image = retrieval.query_names[row] if retrieval.forward else None
            rows.append(
                QueryRow(
                    query=retrieval.query_ids[row], text=retrieval.texts[row], image=image,
                    has_picture=retrieval.has_picture(image), outcome=str(retrieval.outcomes[row]),
                    rank=retrieval.rank(row), lead=json_form(float(retrieval.leads[row])), values=retrieval.values(row),
                    expected=next(iter(retrieval.relevant(row, 1)), None), top=retrieval.top(row, _STRIP),
                )
            )  # fmt: skip
        return QueryList(
            run=run, direction=retrieval.direction, directions=directions_of(retrieval.run),
            queries=len(retrieval.query_ids), matching=len(matching), offset=offset, limit=limit,
            depth=0 if retrieval.ranking is None else retrieval.ranking.depth,
            metrics=list(retrieval.metrics), metric=retrieval.metric,
            figure=json_form({"mean": figure.mean, "low": figure.low, "high": figure.high}),
            facets=retrieval.facets(filters, other), rows=rows,
        )  # fmt: skip

    @pages.get("/runs/{run}")
    def queries_page(
        request: Request, run: str, filters: Chosen, direction: Name | None = None, offset: Offset = 0
    ) -> HTMLResponse:
        listed = queries(run, filters, direction, offset, _PAGE)
        summary, problem = library.summary(run), tables.dataset_if_known(run)[1]
        figures = (replace(section, title="") for section in library.run(run).sections())
        state, path = {"direction": listed.direction, **asdict(filters)}, f"/runs/{quote(run, safe='')}"
        section = query_section(
            listed, filters, lambda picked: address(path, {**state, **asdict(picked)}),
            lambda at: query_address(run, listed.rows[at - offset].query, state, at=at),
        )  # fmt: skip
        (cards,) = section.parts
        assert isinstance(cards, QueryCards)
        images = [picture.image for card in cards.cards for picture in card.pictures]
        pictures = pictures_at(tables.services, summary.dataset, images)
        same = [other for other in library.runs() if other.id != run and comparable(other, summary)]
        return render(
            request, "explorer/queries.html", run=summary, listed=listed, dataset=summary.dataset, problem=problem,
            state=state, sorts=[RANK, *listed.metrics], orders=_ORDERS, comparable=same,
            figure=metric_figure(f"{listed.direction}/{listed.metric}", None).of_row(listed.figure),
            figures=sections_html(figures), article=sections_html([section], pictures),
        )  # fmt: skip

    @api.get("/runs/{run}/query")
    def query(run: str, id: Name, direction: Name | None = None, k: TopK = 10, others: Others = None) -> QueryView:
        """A query: what is relevant to it, and what this run and others over the same dataset retrieve."""
        retrieval, requested = tables.retrieval(run, direction), others or ()
        row, dataset = retrieval.row(id), library.summary(run).dataset
        members = library.dataset_summary(dataset).runs if dataset else ()
        same = {member: library.summary(member).name for member in members if member != run}
        # Without any that are asked for, the first runs over the same dataset.
        beside = [other for other in requested if other in same] or list(same)[: _SIDE_BY_SIDE - 1]
        results, notes = [RunResult.of(library.summary(run), retrieval, row, k)], []
        for other in beside[: _SIDE_BY_SIDE - 1]:
            listed = tables.retrieval_if_known(other, retrieval.direction)
            if listed is not None and id in listed.rows:
                results.append(RunResult.of(library.summary(other), listed, listed.row(id), k))
            elif other in requested:
                notes.append(f"{same[other]} has no such query.")
        data, problem = tables.dataset_if_known(run)
        notes += [] if problem is None else [f"Texts and pictures are missing: {problem}."]
        image = retrieval.query_names[row] if retrieval.forward else None
        captions: list[str] = []
        if image is not None and data is not None:
            captions = data.described.captions.filter(pl.col("image") == image)["text"].to_list()
        columns = retrieval.run.columns.get(retrieval.direction)
        compared = {result.run for result in results}
        return QueryView(
            dataset=dataset, direction=retrieval.direction, query=id,
            text=None if retrieval.forward else retrieval.texts[row], image=image,
            has_picture=retrieval.has_picture(image), captions=captions,
            columns={} if columns is None else shown_facts(columns.row(row, named=True)),
            relevant=retrieval.relevant(row, _MOST_RELEVANT), results=results,
            other_runs={member: name for member, name in same.items() if member not in compared}, notes=notes,
        )  # fmt: skip

    viewed = Depends(query)

    @pages.get("/runs/{run}/query")
    def query_page(
        request: Request, run: str, filters: Chosen, view: QueryView = viewed, at: Offset | None = None
    ) -> HTMLResponse:
        steps: dict[str, tuple[int, str]] = {}
        if at is not None:  # the queries before and after it in the list that the reader came from
            retrieval = tables.retrieval(run, view.direction)
            other = tables.retrieval(filters.against, view.direction) if filters.against else None
            rows, ids = retrieval.select(filters, other), retrieval.query_ids
            near = {"previous": at - 1, "next": at + 1}
            steps = {name: (step, ids[int(rows[step])]) for name, step in near.items() if 0 <= step < len(rows)}
        changed = perturbations_of(tables, run, view.direction, view.query)
        return render(
            request, "explorer/query.html", run=library.summary(run), view=view, steps=steps, at=at,
            state={"direction": view.direction, **asdict(filters)}, marks=likely.of_view(run, view),
            perturbations=sections_html(changed.sections()) if changed.rows else "",
        )  # fmt: skip

    @api.get("/runs/{run}/perturbations")
    def perturbations(run: str, id: Name, direction: Name | None = None) -> dict[str, Any]:
        """What perturbations do to a query, from the robustness studies in the folder."""
        return perturbations_of(tables, run, direction, id).as_dict()

    @api.get("/runs/{run}/likely-positives")
    def likely_positives(run: str, id: Name, direction: Name | None = None, k: TopK = 10) -> LikelyPositives:
        """Items of the top k that are not marked as relevant and worth a look by their captions."""
        return likely.search(run, direction, id, k=k)


def _add_explanations(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library, services = tables.library, tables.services
    explanations: RecentCache[Explanation] = RecentCache(256)
    objects: RecentCache[DatasetObjects] = RecentCache(4)

    def load_parser() -> None:
        """Load the parser and WordNet, which take seconds: the first explanation need not wait for them."""
        if library.runs():
            with suppress(CrosslensError):  # not installed: explanations say so
                find_pipeline().load()
                load_wordnet().hypernym_closure("dog.n.01")

    services.start_work.append(load_parser)

    def explained(run: str, direction: str | None, query: str) -> Explanation:
        """The explanation of a query, computed when somebody asks; raises where the dataset is not there."""
        retrieval = tables.retrieval(run, direction)
        retrieval.row(query)

        def make() -> Explanation:
            dataset = library.dataset_of(run)
            scene = objects.get(dataset.fingerprint, lambda: DatasetObjects(dataset))
            ranking = retrieval.run.rankings[retrieval.direction]
            if query not in ranking.query_ids:
                problem = f"this run keeps no list for the query {query!r:.200}"
                raise InputError(problem, code="no-list", subject=query)
            # The ranking of a single query: what is computed from it does not grow with the run.
            single = {retrieval.direction: ranking.of_queries([ranking.query_ids.index(query)])}
            alone = replace(retrieval.run, rankings=single)
            return explain_queries(alone, dataset, [query], retrieval.direction, objects=scene)[0]

        return explanations.get((run, library.summary(run).signature, retrieval.direction, query), make)

    @api.get("/runs/{run}/explanation")
    def explanation(run: str, id: Name, direction: Name | None = None) -> dict[str, Any]:
        """Why a query retrieved what it did, as ``crosslens explain --json`` prints it."""
        return explained(run, direction, id).as_dict()

    @pages.get("/runs/{run}/explanation")
    def explanation_page(request: Request, run: str, id: Name, direction: Name | None = None) -> HTMLResponse:
        """The explanation alone: the query's page loads it, and it is a page of its own without scripts."""
        why, summary = explained(run, direction, id), library.summary(run)
        images = [picture.image for picture in (why.right, why.other) if picture is not None]
        article = sections_html(why.sections(), pictures_at(services, summary.dataset, images, 640))
        return render(request, "explorer/explanation.html", run=summary, query=id, direction=direction, article=article)


def _add_datasets(api: APIRouter, pages: APIRouter, tables: QueryTables) -> None:
    library = tables.library
    described: RecentCache[ServedDataset] = RecentCache(8)
    searched: RecentCache[pl.DataFrame] = RecentCache(4)

    def names_of_runs(dataset: str) -> dict[str, str]:
        return {run: library.summary(run).name for run in library.dataset_summary(dataset).runs}

    def served(name: str) -> ServedDataset:
        dataset = library.dataset(name)
        return described.get((name, dataset.fingerprint), lambda: ServedDataset.of(name, dataset))

    @api.get("/datasets")
    def datasets() -> list[dict[str, Any]]:
        """All datasets of the runs."""
        rows = []
        for summary in library.datasets():
            row = {"id": summary.id, "name": summary.name, "runs": list(summary.runs)}
            counts: dict[str, Any] = {"images": None, "captions": None, "problem": None}
            try:
                dataset = library.dataset(summary.id)
                counts |= {"images": len(dataset.image_ids), "captions": len(dataset.caption_ids)}
            except (CrosslensError, OSError) as error:
                counts["problem"] = error.problem if isinstance(error, CrosslensError) else "the dataset cannot be read"
            rows.append(row | counts)
        return rows

    @pages.get("/datasets")
    def datasets_page(request: Request) -> HTMLResponse:
        read = []
        damaged = []
        for row in datasets():
            if row["problem"] is None:
                name = Link(row["name"], f"/datasets/{quote(row['id'], safe='')}")
                read.append((name, row["images"], row["captions"], len(row["runs"])))
            else:
                damaged.append((row["name"], row["problem"]))
        parts = [Table(("Dataset", "Images", "Captions", "Runs"), read)] if read else []
        parts += [Table(("Dataset", "Problem"), damaged, title="Cannot be read")] if damaged else []
        return render(request, "explorer/datasets.html", article=sections_html([Section("", tuple(parts))]))

    @api.get("/datasets/{dataset}")
    def dataset_description(dataset: str) -> dict[str, Any]:
        """What a dataset is like."""
        return {**served(dataset).as_dict(), "runs": names_of_runs(dataset)}

    @api.get("/datasets/{dataset}/images")
    def images(dataset: str, search: Words = "", offset: Offset = 0, limit: Limit = 50) -> dict[str, Any]:
        """A page of the images of a dataset with their captions."""
        data = library.dataset(dataset)

        def words() -> pl.DataFrame:
            """One row per image: its captions, and all that can be searched for in lower case."""
            captions = data.captions.group_by("image", maintain_order=True).agg(pl.col("text").alias("captions"))
            joined = data.images.select("image").join(captions, on="image", how="left", maintain_order="left")
            texts = pl.col("captions").list.join("\n").fill_null("")
            return joined.with_columns(words=pl.concat_str(texts, pl.lit("\n"), pl.col("image")).str.to_lowercase())

        table = searched.get((dataset, data.fingerprint), words)
        total = table.height
        for word in search.lower().split():
            table = table.filter(pl.col("words").str.contains(word, literal=True))
        rows = [
            {"image": image, "has_picture": tables.has_picture(dataset, image), "captions": captions or []}
            for image, captions in table[offset : offset + limit].select("image", "captions").iter_rows()
        ]
        counts = {"images": total, "matching": table.height, "offset": offset, "limit": limit}
        return {"dataset": dataset, **counts, "rows": rows}

    @pages.get("/datasets/{dataset}")
    def dataset_page(request: Request, dataset: str, search: Words = "", offset: Offset = 0) -> HTMLResponse:
        description = served(dataset)
        return render(
            request, "explorer/dataset.html", dataset=description, runs=names_of_runs(dataset), search=search,
            article=sections_html(description.sections()), images=images(dataset, search, offset, _IMAGES),
        )  # fmt: skip

    @api.get("/datasets/{dataset}/image")
    def image(dataset: str, id: Name) -> dict[str, Any]:
        """An image with all captions, and who retrieves it."""
        runs, data = dict(list(names_of_runs(dataset).items())[:_RUNS]), library.dataset(dataset)
        if id not in data.image_rows:
            raise InputError(f"no image {id!r:.200} in {data.name}", code="unknown-id", subject=id)
        by_text, by_image = (
            {run: retrieval for run in runs if (retrieval := tables.retrieval_if_known(run, direction)) is not None}
            for direction in (TEXT_TO_IMAGE, IMAGE_TO_TEXT)
        )
        wrong = {run: retrieval.wrong_queries(id) for run, retrieval in by_text.items()}
        objects: list[str] = []
        if data.objects is not None:
            counted = data.objects.filter(pl.col("image") == id)["name"].drop_nulls().value_counts(sort=True)
            objects = [f"{count} × {label}" if count > 1 else str(label) for label, count in counted.iter_rows()]
        captions = data.captions.filter(pl.col("image") == id).select("caption", "text").iter_rows()
        return {
            "dataset": dataset,
            "dataset_name": data.name,
            "image": id,
            "has_picture": tables.has_picture(dataset, id),
            "columns": shown_facts(data.images.row(data.image_rows[id], named=True)),
            "captions": [
                {"caption": caption, "text": text, "ranks": {run: by_text[run].rank_of(caption) for run in by_text}}
                for caption, text in captions
            ],
            "objects": objects,
            "runs": runs,
            # The ranks of the first of its captions, when the image is the query.
            "image_ranks": {run: retrieval.rank_of(id) for run, retrieval in by_image.items()},
            # Caption queries of other images with this image in their list, the highest ranks first.
            "retrieved_wrongly": {
                run: [
                    {"query": query, "text": retrieval.text_of(query), "rank": rank}
                    for rank, query in wrong[run][:_WRONG]
                ]
                for run, retrieval in by_text.items()
            },
            "wrong_counts": {run: len(queries) for run, queries in wrong.items()},
        }

    @pages.get("/datasets/{dataset}/image")
    def image_page(request: Request, dataset: str, id: Name) -> HTMLResponse:
        return render(request, "explorer/image.html", view=image(dataset, id))
