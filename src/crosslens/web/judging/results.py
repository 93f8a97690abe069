"""Results of a project: agreement, shares of labels, people, models and correlations, and how they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from math import inf, isfinite, nan
from typing import Any

import numpy as np
import polars as pl
from sqlalchemy import select

from crosslens.core import (
    Bars,
    Cards,
    Cell,
    Chart,
    ConflictError,
    CrosslensError,
    FactList,
    Figure,
    Heat,
    Histogram,
    Part,
    PictureCard,
    Presented,
    Row,
    Section,
    Series,
    Table,
    Text,
    percent,
)
from crosslens.explanations import association_rules, cause_numbers
from crosslens.statistics import Bootstrap, Estimate
from crosslens.storage import IntArray, is_finite_number, json_form
from crosslens.values import BOTH, Run, split_name
from crosslens.web.judging.agreement import (
    CHECK,
    DISTRACTOR,
    MODEL,
    PRACTICE,
    UNDECIDED,
    CauseAgreement,
    Disagreement,
    ModelAgreement,
    ProjectAgreement,
    codes,
    compare_causes,
    decide,
    disagreements,
    judged_by,
    judgement_table,
    labels_of,
    measure_project,
    metric_correlations,
    model_agreement,
    people_table,
)
from crosslens.web.judging.database.engine import Database
from crosslens.web.judging.database.judgements import judgements
from crosslens.web.judging.database.projects import JudgingProject, StoredItem, as_project, items, locked_project
from crosslens.web.judging.database.tables import AdjudicationRow, ItemRow, ProjectRow
from crosslens.web.judging.tasks import EXPORTED_AS, PAIRS, Answer, check_answer, label_grades, read_form


@dataclass(frozen=True, eq=False)
class ProjectAnswers:
    """A project with its items by id, all judgements, and the owner's decisions."""

    project: JudgingProject
    items: Mapping[str, StoredItem]
    table: pl.DataFrame
    adjudicated: Mapping[str, Answer]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the form."""
        return tuple(label.name for label in self.project.form.labels)

    @property
    def titles(self) -> dict[str, str]:
        return {label.name: label.title for label in self.project.form.labels}

    @property
    def verdicts(self) -> tuple[str, str] | None:
        """Of a survey of pairs, the label that says that a pair fits, and the one that says that it does not."""
        grades = label_grades(self.project.form) if self.project.task == PAIRS else {}
        ordered = sorted(grades, key=lambda label: grades[label])
        return (ordered[-1], ordered[0]) if ordered else None

    @cached_property
    def pairs(self) -> dict[str, tuple[str, str]]:
        """Image and caption of the items that count and name both."""
        ids = {name: (item.content.about.get("image"), item.content.about.get("caption"))
                 for name, item in self.items.items() if item.kind == "real"}  # fmt: skip
        return {name: (str(image), str(caption)) for name, (image, caption) in ids.items() if image and caption}

    @cached_property
    def queries(self) -> dict[str, str]:
        """The query of each item."""
        return {name: str(query) for name, item in self.items.items() if (query := item.content.about.get("query"))}

    @cached_property
    def images(self) -> dict[str, str]:
        """The image that each item is about: the right one of its query, or its own; resampled with all its items."""
        facts_of = {name: item.content.about for name, item in self.items.items()}
        images = {name: facts.get("expected_image") or facts.get("image") for name, facts in facts_of.items()}
        return {name: str(image) for name, image in images.items() if image}

    def clusters(self, items: pl.Series) -> IntArray:
        """The number of each item's image; an item without one is by itself."""
        return codes(pl.Series([f"image {self.images[item]}" if item in self.images else item for item in items]))

    def run_metrics(self, run: Run) -> dict[str, dict[str, float]]:
        """Every per-query metric of a run, in the directions of the items: name → by item."""
        metrics: dict[str, dict[str, float]] = {}
        for direction in sorted({str(item.content.about.get("direction", "t2i")) for item in self.items.values()}):
            for name, values in run.values.items():
                if split_name(name)[0] in (direction, BOTH):
                    by_query = dict(zip(values.query_ids, values.values.tolist(), strict=True))
                    metrics[name] = {item: by_query[query] for item, query in self.queries.items() if query in by_query}
        return {name: numbers for name, numbers in metrics.items() if numbers}


def load_answers(database: Database, project: int) -> ProjectAnswers:
    """Everything that was judged in a project."""
    query = select(AdjudicationRow).join(ItemRow, ItemRow.id == AdjudicationRow.item).where(ItemRow.project == project)
    with database.reading() as session:
        stored_project = session.get(ProjectRow, project)
        if stored_project is None:
            raise CrosslensError(f"project {project} does not exist", code="no-project", subject=str(project))
        read, stored, rows_judged = as_project(stored_project), items(session, project), judgements(session, project)
        decided = [
            (row.item, Answer(tuple(row.labels), row.rating, row.text))
            for row in session.scalars(query.order_by(AdjudicationRow.item))
        ]
    # Items are called by their number, or as an export that was imported called them.
    names = {item.id: str(item.content.about.get(EXPORTED_AS, item.id)) for item in stored}
    if len(set(names.values())) < len(names):
        names = {item.id: str(item.id) for item in stored}
    rows = [row | {"item": names[row["item"]]} for row in rows_judged]
    adjudicated = {names[item]: answer for item, answer in decided}
    return ProjectAnswers(read, {names[item.id]: item for item in stored}, judgement_table(rows), adjudicated)


def adjudicate(database: Database, project: int, item: int, account: int, answer: Answer) -> Answer:
    """Store the owner's decision about an item, instead of an earlier one; returns it as it was stored."""
    with database.writing() as session:
        form = read_form(locked_project(session, project).labels)
        row = session.get(ItemRow, item)
        if row is None or row.project != project:
            raise CrosslensError(
                f"item {item} is not in project {project}", code="no-item", subject=str(item), fix="choose another item"
            )
        checked = check_answer(form, answer)
        decision = session.get(AdjudicationRow, item) or AdjudicationRow(item=item)
        decision.account, decision.created = account, session.now
        decision.labels, decision.rating, decision.text = list(checked.labels), checked.rating, checked.text
        session.add(decision)
        session.note("item decided", account, project=project, detail=f"item {item}")
        return checked


def withdraw_decision(database: Database, project: int, item: int, by: int | None = None) -> None:
    """Remove the owner's decision about an item."""
    with database.writing() as session:
        locked_project(session, project)
        row, decision = session.get(ItemRow, item), session.get(AdjudicationRow, item)
        if row is None or row.project != project or decision is None:
            raise ConflictError(f"nothing was decided about item {item}", fix="reload the page", code="no-decision")
        session.delete(decision)
        session.note("decision taken back", by, project=project, detail=f"item {item}")


_SHARE = dict.fromkeys(("share", "low", "high"), pl.Float64)
_SCORES = ("score[", "cosine")
_CAUSES = ("no cause", "one cause", "two causes", "three causes")
_COEFFICIENTS = {"pearson": "Pearson's r", "spearman": "Spearman's ρ", "kendall-b": "Kendall's τ-b"}


def overview_sections(results: ProjectResults) -> Iterator[Section]:
    """How far people agree; how often each label and rating was given; which causes there are, and rules among them."""
    titles, shares = results.answers.titles, results.shares
    yield Section(results.title, (FactList(tuple(_facts(results))),))
    rows = []
    for row in shares.to_dicts():
        kappa = results.agreement.labels[row["label"]]
        share = Figure.percent(None).of_row(row, "share")
        reliability = (Figure(value, digits=3) for value in (kappa.alpha, kappa.kappa))
        rows.append((titles.get(row["label"], row["label"]), row["count"], share, *reliability))
    notes = ("In brackets: 95% intervals over images. α: Krippendorff's, κ: Cohen's, of each label given or not.",)
    table = Table(("label", "given", "%", "α", "κ"), rows, "lrlrr", notes=notes, drawn=True)
    yield Section("Labels", (table, *_charts(results)))
    if results.causes and results.rules.height:
        rules = tuple(
            (" and ".join(titles.get(name, name) for name in rule["if"]), titles.get(rule["then"], rule["then"]),
             rule["count"], Figure.percent(rule["support"]), Figure.percent(rule["confidence"]),
             Figure(rule["lift"]), Figure(rule["p_adjusted"], digits=3))
            for rule in results.rules.iter_rows(named=True)
        )  # fmt: skip
        header = ("if", "then", "items", "support, %", "confidence, %", "lift", "p, corrected")
        note = (
            "If an item has the first cause, it has the second one, too, in the share of the items that confidence is."
        )
        yield Section("Rules", (Table(header, rules, notes=(note,)),))


def pair_sections(results: ProjectResults) -> Iterator[Section]:
    """Of a survey of pairs: how many people accept them, in subsets as large as one person's share, and one by one."""
    shares, answers = results.agreement.by_item.each, results.answers
    if answers.verdicts is None or not shares:
        return
    scores = {
        name: {
            metric: value
            for metric, value in item.content.about.get("metrics", {}).items()
            if metric.startswith(_SCORES)
        }
        for name, item in answers.items.items()
        if name in shares
    }
    pairs = sorted(scores, key=lambda name: min(scores[name].values(), default=inf))
    rows = tuple(
        (
            f"{subset['first']:,} to {subset['last']:,}",
            Figure.percent(subset["mean"]),
            Figure.percent(subset["minimum"]),
        )
        for subset in results.subsets
    )
    judges = dict(results.judged["item"].value_counts().iter_rows())
    cards = []
    for name in pairs:
        content = answers.items[name].content
        numbers = "  ".join(f"{metric} {value:.3f}" for metric, value in scores[name].items())
        share_line = f"{percent(shares[name])} % of {judges[name]:,} say that it fits"
        image = content.pictures[0].image if content.pictures else None
        cards.append(PictureCard(share_line, (*(text.text for text in content.texts), *filter(None, [numbers])), image))
    key = "The pairs with the lowest score first."
    parts = (
        [Table(("pairs", "mean, %", "least, %"), rows, title="Agreement that a pair fits, by subset")] if rows else []
    )
    yield Section("Pairs", (*parts, Cards("Pairs", tuple(cards), results.pictures, key=key)))


def _facts(results: ProjectResults) -> Iterator[tuple[str, str]]:
    agreement, answers, scores = results.agreement, results.agreement.answers, results.agreement.scores
    write = Figure(None, digits=3).write
    yield "judgements", f"{agreement.judgements:,} by {agreement.judges:,} people"
    yield "items", f"{agreement.items:,}, {agreement.repeated:,} of them judged by several"
    yield "whole answers", f"Krippendorff's α {write(answers.alpha)}, Cohen's κ {write(answers.kappa)}"
    counted = "agreement of items" if agreement.fits is None else "agreement that a pair fits"
    shares = agreement.by_item
    # Of two judges, one always gives the most frequent answer: 50 % at least says nothing.
    least = "" if agreement.fits is None and agreement.most_judges <= 2 else f", {percent(shares.minimum)} % at least"
    draws = Bootstrap(results.answers.clusters(pl.Series(list(shares.each), dtype=pl.String)))
    mean = draws.estimate(np.array(list(shares.each.values())), bounds=(0, 1))
    yield counted, f"{Figure.percent(mean.mean, *mean.interval, unit=' %')} on average{least}"
    yield "disagreements", f"{len(results.disagreements):,}"
    right, count = results.known_answers[DISTRACTOR]
    if count:
        yield "true negatives", f"{right:,} of {count:,} judgements right ({percent(right / count)} %)"
    if scores is not None:
        what = "ratings" if results.answers.project.form.rating else "grades of labels"
        yield f"scores ({what})", f"α {write(agreement.ordinal)} (ordinal), {write(scores.alpha)} (interval)"
        yield "one judge and the others", f"Pearson's r {write(scores.one_against_others['pearson'])}"
        ceiling, reliability = (
            str(Figure(figure, *ends, digits=3))
            for figure, ends in (
                (scores.ceiling(), scores.ceiling_interval()),
                (scores.reliability, scores.reliability_interval),
            )
        )
        note = "No metric is expected to correlate better with the mean scores."
        yield "human ceiling", f"{ceiling}; reliability of the mean {reliability}. {note}"
    if isfinite(results.mean_rating.mean):
        mean = results.mean_rating
        yield "mean rating", str(Figure(mean.mean, mean.low, mean.high))


def _charts(results: ProjectResults) -> Iterator[Part]:
    titles, charts = results.answers.titles, list[Chart]()
    ratings, scale = results.ratings, results.answers.project.form.rating
    if ratings is not None and scale is not None and ratings["count"].sum():
        yield Histogram(
            title=scale.title, edges=tuple(range(scale.low, scale.high + 2)), counts=tuple(ratings["count"]),
            unit=Figure(None, digits=0), axis="rating", noun="judgements", whole=True, printed=True,
        )  # fmt: skip
    counts = results.numbers_of_causes
    if counts is not None and counts["count"].sum():
        groups = tuple(_CAUSES[many] if many < len(_CAUSES) else f"{many} causes" for many in counts["causes"])
        series = Series("share", tuple(Figure.percent(None).of_row(row, "share") for row in counts.to_dicts()))
        title, axis = "Items by their number of causes", "percent of decided items"
        charts.append(Bars(title=title, groups=groups, series=(series,), heading="causes", axis=axis))
    if results.causes and results.together["count"].sum():
        cells = {(first, second): count for first, second, count, _ in results.together.iter_rows()}
        used = {label for pair, count in cells.items() if count for label in pair}
        names = [label for label in results.answers.labels if label in used]
        grid = tuple(
            tuple(Figure(cells.get((row, column), cells.get((column, row))), digits=0) for column in names)
            for row in names
        )
        headings = tuple(titles[name] for name in names)
        title = "Causes that occur together"
        charts.append(Heat(title=title, rows=headings, columns=headings, cells=grid, heading="cause"))
    yield Row(tuple(charts))


def model_sections(results: ProjectResults) -> Iterator[Section]:
    """Each model against what people decided, also label by label."""
    if not results.models:
        return
    rows = tuple(
        (model.model, model.judged, model.compared, Figure.percent(model.same), Figure.percent(model.person),
         Figure(model.kappa, digits=3), Figure(model.score, digits=3))
        for model in results.models
    )  # fmt: skip
    header = ("model", "judged", "compared", "as decided, %", "a person, %", "κ", "r of scores")
    notes = (
        "As decided: exactly the labels of the majority, or of the owner's decision. A person: how often one of them "
        "answers as most others do.",
    )
    people, titles = results.agreement.labels, results.answers.titles
    by_label: tuple[tuple[Cell, ...], ...] = tuple(
        (title, *(Figure(kappa, digits=3) for kappa in (*(model.labels.get(label, nan) for model in results.models),
                                                        people[label].kappa)))
        for label, title in titles.items()
    )  # fmt: skip
    names = ("label", *(model.model for model in results.models), "people")
    title = "Cohen's κ of each label"
    yield Section("Models", (Table(header, rows, notes=notes), Table(names, by_label, title=title)))


def correlation_sections(
    results: ProjectResults, further: Mapping[str, Mapping[str, float]] | None = None
) -> Iterator[Section]:
    """What people said against numbers that came with the items, ``further`` ones, and derived causes."""
    titles, number = results.answers.titles, Figure(None)
    table = results.correlations(further).filter(pl.col("pearson").is_not_null())
    rows = table.to_dicts()
    if rows:
        rated = tuple(
            (
                row["metric"],
                row["items"],
                *(number.of_row(row, name, f"{name}_") for name in ("pearson", "spearman")),
            )
            for row in rows
            if row["judged"] == "rating"
        )
        labels = [label for label in results.answers.labels if label in set(table["judged"])]
        values = {(row["metric"], row["judged"]): row["spearman"] for row in rows}
        shared = tuple(
            (metric, *(Figure(values.get((metric, label))) for label in labels))
            for metric in dict.fromkeys(row["metric"] for row in rows)
        )
        every = tuple(
            (titles.get(row["judged"], row["judged"]), row["metric"], row["items"],
             *(number.of_row(row, name, f"{name}_") for name in _COEFFICIENTS))
            for row in rows
        )  # fmt: skip
        parts: list[Part] = []
        header: tuple[str, ...]
        if rated:
            header = ("metric", "items", "Pearson's r", "Spearman's ρ")
            parts.append(Table(header, rated, "lrll", title="Metrics against the mean rating"))
        if labels:
            title = "Metrics against the share of judges who gave a label: Spearman's ρ"
            header = ("metric", *(titles.get(label, label) for label in labels))
            parts.append(Table(header, shared, title=title))
        header = ("judged", "metric", "items", *_COEFFICIENTS.values())
        parts.append(Table(header, every, "llrlll", title="All correlations", folded=True))
        note = "In brackets: 95% intervals, images resampled. Metrics that are the same for all items are left out."
        yield Section("Correlations", (*parts, Text((note,), note=True)))
    if (derived := results.derived_causes) is not None:
        counts = tuple((titles.get(row[0], row[0]), *row[1:]) for row in derived.table.iter_rows())
        counted = ("items", "both", "people", "derived", "neither")
        kappas = tuple(
            (titles.get(row["label"], row["label"]), row["cause"], *(row[name] for name in counted),
             number.of_row(row, "kappa", "kappa_"))
            for row in derived.kappa.to_dicts()
        )  # fmt: skip
        yield Section(
            "People's causes and derived ones",
            (
                Table(
                    ("label", "items", *derived.causes), counts,
                    title=f"People's causes (rows) against derived ones, over {derived.items:,} decided items",
                ),
                Table(
                    ("label", "cause", *counted, "κ"), kappas, "llrrrrrl",
                    title="Items where it is not open whether the derived cause holds",
                    notes=("Both say so, only people, only derived, neither; in brackets: 95% intervals.",),
                ),
            ),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ProjectResults(Presented):
    """The results of people's judgements of real items; models are apart, in ``models``. Computed when asked for."""

    answers: ProjectAnswers
    pictures: Mapping[str, str] = field(default_factory=dict)
    """Files of the images, for a page."""

    @property
    def title(self) -> str:
        return self.answers.project.name

    def sections(self) -> Iterator[Section]:
        """Agreement, labels, ratings, causes, people, models, and what is automatic beside them."""
        yield from overview_sections(self)
        yield from pair_sections(self)
        kinds = {CHECK: "checks right", DISTRACTOR: "true negatives right"}
        rows = [
            (row["account"], row["judged"], Figure(row["seconds"], digits=1), Figure.percent(row["agreement"]),
             *(f"{row[f'{kind}_right']} of {row[f'{kind}_given']}" if row[f"{kind}_given"] else "–" for kind in kinds))
            for row in self.people.iter_rows(named=True)
        ]  # fmt: skip
        header = ("person", "items", "seconds", "agrees, %", *kinds.values())
        yield Section("People", (Table(header, rows, "lrrrrr"),) if rows else ())
        yield from model_sections(self)
        yield from correlation_sections(self)

    @cached_property
    def judged(self) -> pl.DataFrame:
        return judged_by(self.answers.table)

    @property
    def causes(self) -> list[str]:
        """The labels that say what is wrong: all that may stand beside others."""
        form = self.answers.project.form
        return [label.name for label in form.labels if not label.alone] if form.several else []

    @property
    def grades(self) -> dict[str, float] | None:
        """The numbers of labels, where there are no ratings."""
        form = self.answers.project.form
        return None if form.rating is not None else label_grades(form) or None

    @cached_property
    def agreement(self) -> ProjectAgreement:
        fits = None if self.answers.verdicts is None else self.answers.verdicts[0]
        images = self.answers.images
        return measure_project(self.judged, self.answers.labels, grades=self.grades, fits=fits, images=images)

    @cached_property
    def subsets(self) -> list[dict[str, float]]:
        """Of a survey of pairs, the agreement in subsets as large as one person's share, in the order of the items."""
        each, size = self.agreement.by_item.each, self.answers.project.settings.per_person
        if self.answers.verdicts is None or size is None:
            return []
        ordered = [each[name] for name in self.answers.items if name in each]
        parts = {start: ordered[start : start + size] for start in range(0, len(ordered), size)}
        return [{"first": start + 1, "last": start + len(part), "mean": float(np.mean(part)), "minimum": min(part)}
                for start, part in parts.items()]  # fmt: skip

    @cached_property
    def known_answers(self) -> dict[str, tuple[int, int]]:
        """Of attention checks, true negatives and practice items: how many judgements are right, of how many."""
        return {kind: (int(self.people[f"{kind}_right"].sum()), int(self.people[f"{kind}_given"].sum()))
                for kind in (CHECK, DISTRACTOR, PRACTICE)}  # fmt: skip

    @cached_property
    def decided(self) -> pl.DataFrame:
        """One row per item: what was decided, and by whom."""
        real = {item: answer for item, answer in self.answers.adjudicated.items()
                if item in self.answers.items and self.answers.items[item].kind == "real"}  # fmt: skip
        return decide(self.judged, real)

    @cached_property
    def shares(self) -> pl.DataFrame:
        """One row per label: how many judgements gave it, their share, and its interval over images."""
        draws = Bootstrap(self.answers.clusters(self.judged["item"]))
        rows = []
        for label in labels_of(self.judged, self.answers.labels):
            has_label = self.judged["labels"].list.contains(label).cast(pl.Float64).to_numpy()
            rows.append((label, int(has_label.sum()), *draws.estimate(has_label, bounds=(0, 1)).cells))
        schema = {"label": pl.String, "count": pl.Int64, **_SHARE}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def ratings(self) -> pl.DataFrame | None:
        """One row per rating: how many judgements have it (rounded half up), and their share of those with a rating.

        None where there are no ratings.
        """
        scale = self.answers.project.form.rating
        if scale is None:
            return None
        values = self.judged["rating"].drop_nulls().to_numpy()
        whole = np.floor(values + 0.5).astype(np.int64)
        rows = [(rating, int((whole == rating).sum())) for rating in range(scale.low, scale.high + 1)]
        counts = pl.DataFrame(rows, schema={"rating": pl.Int64, "count": pl.Int64}, orient="row")
        return counts.with_columns(share=pl.col("count") / max(len(values), 1))

    @cached_property
    def mean_rating(self) -> Estimate:
        """The mean rating with its interval over images."""
        rated, scale = self.judged.filter(pl.col("rating").is_not_null()), self.answers.project.form.rating
        bounds = None if scale is None else (float(scale.low), float(scale.high))
        return Bootstrap(self.answers.clusters(rated["item"])).estimate(rated["rating"].to_numpy(), bounds=bounds)

    @cached_property
    def _decided_labels(self) -> tuple[pl.DataFrame, IntArray]:
        """One row per decided item and a boolean column per label; the image of each."""
        final = self.decided.filter(pl.col("by") != UNDECIDED)
        labels = labels_of(final, self.answers.labels)
        table = final.select(pl.col("labels").list.contains(label).alias(label) for label in labels)
        return table, self.answers.clusters(final["item"])

    @cached_property
    def numbers_of_causes(self) -> pl.DataFrame | None:
        """How many items have no cause, one, two, …; None where labels are no causes."""
        table, clusters = self._decided_labels
        return cause_numbers(table.select(self.causes), Bootstrap(clusters)) if self.causes else None

    @cached_property
    def derived_causes(self) -> CauseAgreement | None:
        """People's causes against those that were derived; None where no judged item came with any."""
        facts_of = {name: item.content.about for name, item in self.answers.items.items()}
        causes = {name: facts["causes"] for name, facts in facts_of.items() if facts.get("causes")}
        return compare_causes(self.decided, self.answers.labels, causes, self.answers.images)

    @cached_property
    def together(self) -> pl.DataFrame:
        """Every two labels that hold together for an item: how many items, and their share of the decided ones."""
        frame, _ = self._decided_labels
        rows = []
        for first, second in combinations(frame.columns, 2):
            count = int((frame[first] & frame[second]).sum())
            rows.append((first, second, count, count / frame.height if frame.height else None))
        schema = {"first": pl.String, "second": pl.String, "count": pl.Int64, "share": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def rules(self) -> pl.DataFrame:
        """Every rule "if label A, then label B" over the decided items, where an item can have several."""
        return association_rules(*self._decided_labels)

    @cached_property
    def people(self) -> pl.DataFrame:
        # A true negative in a survey of pairs does not fit, also where nobody said so.
        negative = [] if self.answers.verdicts is None else [self.answers.verdicts[1]]
        expected = {
            name: (item.expected or {}).get("labels") or (negative if item.kind == DISTRACTOR else [])
            for name, item in self.answers.items.items()
        }
        return people_table(self.answers.table, {name: labels for name, labels in expected.items() if labels})

    @cached_property
    def disagreements(self) -> tuple[Disagreement, ...]:
        return disagreements(self.judged, self.answers.adjudicated)

    @cached_property
    def models(self) -> tuple[ModelAgreement, ...]:
        by_models = judged_by(self.answers.table, MODEL)
        return model_agreement(by_models, self.judged, self.decided, self.answers.labels, grades=self.grades)

    @cached_property
    def _quantities(self) -> dict[str, dict[str, float]]:
        """What is correlated: the mean rating of items and, of each label that was given, the share of its judges."""
        ratings = dict(self.decided.filter(pl.col("rating").is_not_null()).select("item", "rating").iter_rows())
        quantities = {"rating": ratings} if ratings else {}
        for label in self.answers.labels:
            has_label = self.judged.select("item", given=pl.col("labels").list.contains(label))
            shares = has_label.group_by("item").agg(pl.col("given").mean()).sort("item")
            if shares["given"].sum():
                quantities[label] = dict(shares.iter_rows())
        return quantities

    @cached_property
    def _with_items(self) -> pl.DataFrame:
        """What people said against the numbers that came with the items."""
        metrics: dict[str, dict[str, float]] = {}
        for name, item in self.answers.items.items():
            for metric, value in (item.content.about.get("metrics") or {}).items():
                if is_finite_number(value):
                    metrics.setdefault(metric, {})[name] = float(value)
        return metric_correlations(self._quantities, metrics, self.answers.images)

    def correlations(self, further: Mapping[str, Mapping[str, float]] | None = None) -> pl.DataFrame:
        """What people said against the numbers that came with the items, and ``further`` ones, such as a run's."""
        if not further:
            return self._with_items
        with_further = metric_correlations(self._quantities, further, self.answers.images)
        order = {name: number for number, name in enumerate(self._quantities)}
        both = pl.concat([self._with_items, with_further])
        return both.sort(pl.col("judged").replace_strict(order, return_dtype=pl.Int64), maintain_order=True)

    def as_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {}
        if self.ratings is not None:
            content["rating"] = {**asdict(self.mean_rating), "judgements": self.judged["rating"].count()}
        if self.derived_causes is not None:
            content["derived_causes"] = self.derived_causes
        content["agreement"] = self.agreement.as_dict() | ({"subsets": self.subsets} if self.subsets else {})
        content["known_answers"] = {
            kind: {"right": right, "given": count} for kind, (right, count) in self.known_answers.items()
        }
        content["decided"] = Counter(self.decided["by"].to_list())
        tables = {
            "labels": self.shares, "people": self.people.drop("first", "last"), "correlations": self.correlations(),
            "ratings": self.ratings, "causes": self.numbers_of_causes,
        }  # fmt: skip
        if self.causes:
            tables |= {"together": self.together, "rules": self.rules}
        content |= {name: table for name, table in tables.items() if table is not None}
        return json_form(content | {"models": self.models})
