"""Judgements as files with a row per judgement, .csv or .jsonl; and such files read again, to the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

import polars as pl

from crosslens.build import VERDICTS, Verdict, candidate_captions, is_imp_folder, write_verdicts
from crosslens.core import InputError, UnknownNameError, UsageError, argument, reading
from crosslens.data import format_suffix, read_records, read_table
from crosslens.storage import for_spreadsheets, is_finite_number, parquet_bytes, read_json_file
from crosslens.values import Dataset
from crosslens.web.judging.agreement import MODEL, PERSON, REAL, UNDECIDED, decide, judged_by, judgement_scores
from crosslens.web.judging.options import ANSWERS, IMP_SHEETS, LABEL_STUDIO, QRELS, ExportOptions
from crosslens.web.judging.results import ProjectAnswers
from crosslens.web.judging.tasks import Answer, AnswerForm, NewItem, label_grades

ADJUDICATED = "adjudicated"
"""The source of what the owner decided."""


Items = Mapping[str, NewItem]
"""What was judged, by the names that items have in results and exports."""


_COLUMNS = (
    "item", "kind", "judge", "source", "labels", "rating", "text", "seconds", "created", "image", "caption",
    "shown_text", "expected", "metrics",
)  # fmt: skip


def answer_rows(answers: ProjectAnswers) -> list[dict[str, Any]]:
    """A row per judgement and per adjudicated answer, whose source is ``adjudicated``."""
    answers_and_decisions = [
        {**row, "judge": row["account"], "created": row["created"].isoformat() if row["created"] else None}
        for row in answers.table.iter_rows(named=True)
    ]
    answers_and_decisions += [
        {**asdict(answer), "item": name, "judge": "", "source": ADJUDICATED}
        for name, answer in answers.adjudicated.items()
    ]
    rows = []
    for row in answers_and_decisions:
        item = answers.items[row["item"]]
        facts = item.content.about
        of_item = {
            "kind": item.kind, "labels": list(row["labels"]), "text": row["text"] or "", "image": facts.get("image"),
            "caption": facts.get("caption"), "shown_text": " / ".join(text.text for text in item.content.texts),
            "expected": "; ".join((item.expected or {}).get("labels", ())), "metrics": facts.get("metrics", {}),
        }  # fmt: skip
        rows.append({name: (row | of_item).get(name) for name in _COLUMNS})
    return rows


@dataclass(frozen=True)
class AnswerRow:
    """A judgement as an export holds it; of what its item shows, there are image, caption and text."""

    item: str
    kind: str
    judge: str
    source: str
    answer: Answer
    seconds: float
    created: datetime | None
    image: str | None
    caption: str | None
    shown_text: str
    expected: tuple[str, ...]
    metrics: Mapping[str, Any]


def is_answer_file(columns: Sequence[str]) -> bool:
    """Whether a table is an export of answers."""
    return set(_COLUMNS) <= set(columns)


def read_answers(path: Path, served: str = "") -> list[AnswerRow] | None:
    """The judgements of an export, .csv or .jsonl, or of tasks that were in Label Studio, .json; else None.

    ``served`` is the name of the dataset in the addresses of pictures.
    """
    suffix = format_suffix(path)
    if suffix not in (".csv", ".jsonl", ".json"):
        return None
    with reading(path):
        if suffix == ".json":
            tasks = read_json_file(path)
            return [
                _read(row, f"task {number}")
                for number, task in enumerate(tasks if isinstance(tasks, list) else [tasks])
                for row in _from_label_studio(task, served, f"task {number}")
            ]
        if suffix == ".jsonl":
            records = read_records(path)
            rows, row_name = list(records.rows), records.row_name
            if not rows or not is_answer_file(list(rows[0])):
                return None
        else:
            frame, row_name = read_table(path)
            if not is_answer_file(frame.columns):
                return None
            rows = []
            for row in frame.iter_rows(named=True):
                cells: dict[str, Any] = dict(row)
                cells["labels"] = cells["labels"].split("; ") if cells["labels"] else []
                try:
                    cells["metrics"] = json.loads(cells["metrics"])
                except (ValueError, RecursionError):
                    cells["metrics"] = None
                rows.append(cells)
        return [_read(row, row_name(number)) for number, row in enumerate(rows)]


def _from_label_studio(task: Any, served: str, place: str) -> Iterator[dict[str, Any]]:
    """The answers in a task that Label Studio exported as JSON: those that it was given, and those made there.

    The ids of results say whose the given ones are; who annotated in Label Studio is a judge of that address or number.
    """
    try:
        models = [entry for entry in task.get("predictions", ()) if isinstance(entry, dict)]  # or only their numbers
        data, entries = task["data"], [*task["annotations"], *models]
        item, judges = str(data["item"]), data["judges"]
        texts = (str(data[name]) for name in sorted(data) if re.fullmatch(r"text\d*", name) and data[name])
        _, is_ours, image = str(data.get("image", "")).partition(f"{quote(served)}/")
        of_item = {
            "item": item, "kind": data["kind"], "image": unquote(image) if is_ours else None, "expected": "",
            "caption": data.get("caption"), "shown_text": " / ".join(texts), "metrics": {},
        }  # fmt: skip
        for entry in entries:
            if entry.get("was_cancelled") or not entry["result"]:  # skipped, or without an answer
                continue
            values = {result["from_name"]: result["value"] for result in entry["result"]}
            own_id = re.match(rf"{re.escape(item)}-(adjudicated|model|\d+)-", str(entry["result"][0].get("id")))
            author = entry.get("completed_by")
            judge, source = (author.get("email") if isinstance(author, dict) else f"label-studio {author}"), PERSON
            if "model_version" in entry and "completed_by" not in entry:
                judge, source = entry["model_version"], MODEL
            elif own_id is not None:
                source = ADJUDICATED if own_id[1] == ADJUDICATED else PERSON
                judge = judges[int(own_id[1])] if own_id[1].isdigit() else ""
            yield of_item | {
                "judge": judge, "source": source, "labels": values.get(CHOICES, {}).get("choices", ()),
                "rating": values.get(RATING, {}).get("rating"), "seconds": entry.get("lead_time"),
                "text": " ".join(values.get(CORRECTION, {}).get("text", ())), "created": entry.get("created_at"),
            }  # fmt: skip
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(
            "not a task with annotations as Label Studio exports it (JSON)", row=place,
            expected="the tasks that crosslens judging export wrote, annotated", fix="export them as JSON",
        ) from error  # fmt: skip


def _read(row: Mapping[str, Any], place: int | str) -> AnswerRow:
    try:
        rating, seconds, created = row["rating"], row["seconds"], row["created"]
        rating = None if rating in (None, "") else float(rating)
        if rating is not None and rating != int(rating):
            raise ValueError
        answer = Answer(tuple(map(str, row["labels"])), None if rating is None else int(rating), str(row["text"] or ""))
        duration = 0.0 if seconds in (None, "") else float(seconds)
        moment = datetime.fromisoformat(created) if created else None
        if not is_finite_number(duration) or (moment is not None and moment.tzinfo is None):
            raise ValueError
        expected = tuple(label for label in str(row["expected"] or "").split("; ") if label)
        ids = {name: None if row[name] in (None, "") else str(row[name]) for name in ("image", "caption")}
        return AnswerRow(
            str(row["item"]), str(row["kind"]), str(row["judge"] or ""), str(row["source"]), answer, duration, moment,
            ids["image"], ids["caption"], str(row["shown_text"] or ""), expected, dict(row["metrics"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "not a judgement as crosslens judging export writes it", row=place, fix="export the project again"
        ) from error


GRADE_RULES = ("majority", "mean", "rating")
PAIR_COLUMNS: dict[str, Any] = {
    "image": pl.String,
    "caption": pl.String,
    "judge": pl.String,
    "score": pl.Float64,
    "grade": pl.Float64,
    "by": pl.String,
}
"""One row per pair and judge; ``grade`` is the pair's, ``by`` says who decided. Rows without a judge are pairs that
only the owner or the dataset's ground truth decided."""


def judged_pairs(
    table: pl.DataFrame, pairs: Mapping[str, tuple[str, str]], form: AnswerForm, rule: str = "majority", *,
    grades: Mapping[str, float] | None = None, adjudicated: Mapping[str, Answer] | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The judged pairs (see ``PAIR_COLUMNS``); ``pairs`` names image and caption of each item.

    A judgement's score is the lowest grade of its labels, or its rating with the rule ``rating``. The grade of a pair
    is that of the labels that most judges gave (``majority``; empty where they are split), or the mean of the scores
    (``mean``, ``rating``); an adjudicated answer wins. A pair that several items show has the mean of their grades.
    """
    if rule not in GRADE_RULES:
        raise UnknownNameError("rule for grades", rule, GRADE_RULES)
    by_label = None if rule == "rating" else label_grades(form, grades)
    if by_label is not None and not by_label:
        raise UsageError(
            "the labels of this project have no grades",
            fix=f"pass {argument('grade', 'LABEL=NUMBER')}, or {argument('rule', 'rating')}",
        )
    final = adjudicated or {}
    scored = table.select("item", "account", score=judgement_scores(table, by_label)).drop_nulls("score")
    means: dict[str, float] = dict(scored.group_by("item").agg(pl.col("score").mean()).iter_rows())
    scores: dict[str, list[tuple[str | None, float | None]]] = {}
    for item, judge, score in scored.iter_rows():
        scores.setdefault(item, []).append((judge, score))
    rows: list[tuple[Any, ...]] = []
    for item, labels, by in decide(table, final).select("item", "labels", "by").iter_rows():
        if item not in pairs:
            continue
        grade = _of_labels(labels or (), by_label) if by != UNDECIDED else None
        if rule != "majority":
            grade = None
            if (answer := final.get(item)) is not None:
                grade = answer.rating if by_label is None else _of_labels(answer.labels, by_label)
            if grade is None:
                grade, by = means.get(item), "mean"
        scores_of_item = scores.get(item) or [(None, None)]
        rows += [(*pairs[item], judge, score, grade, by, item) for judge, score in scores_of_item]
    # One row per pair and judge, with one grade per pair.
    frame, pair = pl.DataFrame(rows, schema=PAIR_COLUMNS | {"item": pl.String}, orient="row"), ["image", "caption"]
    items = frame.unique("item", maintain_order=True).group_by(pair, maintain_order=True)
    grades_of = items.agg(pl.col("grade").mean(), pl.col("by").unique(maintain_order=True).str.join(" + "))
    by_judge = frame.group_by(*pair, "judge", maintain_order=True).agg(pl.col("score").mean())
    joined = by_judge.join(grades_of, on=pair, how="left", maintain_order="left").select(*PAIR_COLUMNS)
    with_judge = joined.filter(pl.col("judge").is_not_null())
    return pl.concat([with_judge, joined.filter(pl.col("judge").is_null()).join(with_judge, on=pair, how="anti")])


def _of_labels(labels: Sequence[str], by_label: Mapping[str, float] | None) -> float | None:
    return min((by_label[label] for label in labels if label in by_label), default=None) if by_label else None


CHOICES, RATING, CORRECTION = "labels", "rating", "correction"
"""Names of the controls."""


def _variables(items: Items) -> tuple[list[str], list[str], str]:
    """The variables of the tasks that hold pictures (image, image1, …) and texts, and which of them is judged."""
    pictures = max((len(item.content.pictures) for item in items.values()), default=0)
    texts = max((len(item.content.texts) for item in items.values()), default=0)
    images, passages = (
        [f"{kind}{number or ''}" for number in range(count)] for kind, count in (("image", pictures), ("text", texts))
    )
    return images, passages, [*images, *passages, "text"][0]


def label_studio_tasks(
    table: pl.DataFrame, items: Items, adjudicated: Mapping[str, Answer], pictures: str = ""
) -> list[dict[str, Any]]:
    """Tasks with annotations (of people) and predictions (of models), as Label Studio imports them.

    ``pictures`` is what stands before ``dataset/image`` in the address of a picture. Annotations name nobody as author,
    because Label Studio refuses people it does not know: their names are in the task's data, in the same order. The
    adjudicated answer is an annotation that is marked as ground truth.
    """
    answers: dict[str, list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        answers.setdefault(row["item"], []).append(row)
    images, passages, target = _variables(items)
    tasks = []
    for name, item in items.items():
        people = [row for row in answers.get(name, ()) if row["source"] != MODEL]
        models = [row for row in answers.get(name, ()) if row["source"] == MODEL]
        annotations = [
            {"result": _result(row, target, f"{name}-{number}"), "lead_time": row["seconds"], "ground_truth": False}
            for number, row in enumerate(people)
        ]
        judges = [row["account"] for row in people]
        if (final := adjudicated.get(name)) is not None:
            result = _result(vars(final), target, f"{name}-adjudicated")
            annotations.append({"result": result, "lead_time": None, "ground_truth": True})
            judges.append(ADJUDICATED)
        predictions = [
            {"model_version": row["account"], "result": _result(row, target, f"{name}-model-{number}")}
            for number, row in enumerate(models)
        ]
        content = item.content
        addresses = [f"{pictures}{quote(picture.dataset)}/{quote(picture.image)}" for picture in content.pictures]
        # All variables of the interface, and what else is known of the item.
        data: dict[str, Any] = dict.fromkeys((*images, *passages), "")
        data |= dict(zip(images, addresses, strict=False))
        data |= dict(zip(passages, (text.text for text in content.texts), strict=False))
        data |= {"item": name, "kind": item.kind}
        data |= {fact: value for fact, value in content.about.items() if fact in ("run", "query", "caption")}
        tasks.append({"data": data | {"judges": judges}, "annotations": annotations, "predictions": predictions})
    return tasks


def _result(answer: Mapping[str, Any], target: str, name: str) -> list[dict[str, Any]]:
    values: list[tuple[str, str, dict[str, Any]]] = [(CHOICES, "choices", {"choices": list(answer["labels"])})]
    if answer["rating"] is not None:
        values.append((RATING, "rating", {"rating": int(answer["rating"])}))
    if answer["text"]:
        values.append((CORRECTION, "textarea", {"text": [answer["text"]]}))
    return [
        {"id": f"{name}-{control}", "from_name": control, "to_name": target, "type": kind, "value": value}
        for control, kind, value in values
    ]


def interface_of(form: AnswerForm, items: Items) -> str:
    """The labelling interface that shows the tasks of these items in Label Studio."""
    images, passages, target = _variables(items)
    parts = [f'  <Image name="{name}" value="${name}"/>' for name in images]
    parts += [f'  <Text name="{name}" value="${name}"/>' for name in passages]
    parts.append(f"  <Header value={quoteattr(form.question)}/>")
    choices = "\n".join(f"    <Choice value={quoteattr(label.name)}/>" for label in form.labels)
    several = "multiple" if form.several else "single"
    parts.append(f'  <Choices name="{CHOICES}" toName="{target}" choice="{several}">\n{choices}\n  </Choices>')
    if form.rating is not None:
        parts.append(f'  <Rating name="{RATING}" toName="{target}" maxRating="{form.rating.high}"/>')
    if form.text is not None:
        parts.append(f'  <TextArea name="{CORRECTION}" toName="{target}"/>')
    return "<View>\n" + "\n".join(parts) + "\n</View>\n"


_GOOD, _BAD = "good", "bad"


def export_sheets(
    answers: ProjectAnswers, folder: str | Path, *, source: str = PERSON, overwrite: bool = False
) -> list[Path]:
    """Write the judgements of a project into the folder of an IMP build; returns the sheets."""
    candidates = set(candidate_captions(folder)["caption"])
    captions = {item: caption for item, (_, caption) in answers.pairs.items() if caption in candidates}
    if not captions:
        raise UsageError(
            f"no item of the project is a candidate of the benchmark in {folder}",
            fix=f"import its candidates first, or pass {argument('form', ANSWERS)}",
        )
    texts = {item: answers.items[item].content.texts[0].text for item in captions}
    verdicts: dict[str, dict[str, Verdict]] = {}
    for row in judged_by(answers.table, source, (REAL,)).iter_rows(named=True):
        if row["item"] in captions:
            verdict = as_imp_verdict(row["labels"], row["text"] or "", texts[row["item"]])
            verdicts.setdefault(captions[row["item"]], {})[row["account"]] = verdict
    decided = {
        captions[item]: as_imp_verdict(answer.labels, answer.text, texts[item])
        for item, answer in answers.adjudicated.items()
        if item in captions and source == PERSON
    }
    return write_verdicts(folder, verdicts, decided, overwrite=overwrite)


def as_imp_verdict(labels: Sequence[str], correction: str, text: str) -> Verdict:
    """An answer as a verdict. A bad caption with a correction is, for the benchmark, a good one that was corrected."""
    label = labels[0] if len(labels) == 1 else ""
    if label not in VERDICTS:
        raise UsageError(
            f"the answer {', '.join(labels)!r} is no verdict of an IMP benchmark",
            fix=f"export a project whose labels are {', '.join(VERDICTS)}",
        )
    corrected = correction.strip() if correction.strip() != text.strip() else ""
    if corrected and label in (_GOOD, _BAD):
        return Verdict(_GOOD, corrected)
    return Verdict(label)


_BY_SUFFIX = {".csv": ANSWERS, ".jsonl": ANSWERS, ".parquet": QRELS, ".json": LABEL_STUDIO}
_SUFFIXES = {ANSWERS: (".csv", ".jsonl"), QRELS: (".parquet", ".csv"), LABEL_STUDIO: (".json",)}


def export_form(path: str | Path, options: ExportOptions) -> str:
    """The form that is asked for, or that the ending of the file stands for."""
    suffix = format_suffix(path)
    if options.form == IMP_SHEETS or (options.form is None and is_imp_folder(path)):
        return IMP_SHEETS
    form = options.form or _BY_SUFFIX.get(suffix)
    if form is None or suffix not in _SUFFIXES[form]:
        endings = ", ".join(_SUFFIXES[form] if form else _BY_SUFFIX)
        raise UsageError(f"{path} does not end in {endings}", fix="name a file with one of these endings")
    return form


def export_content(
    answers: ProjectAnswers, path: str | Path, options: ExportOptions | None = None, dataset: Dataset | None = None
) -> bytes:
    """The content of the file; a ``dataset`` adds its own pairs to qrels."""
    options = options or ExportOptions()
    form, suffix = export_form(path, options), format_suffix(path)
    if form == QRELS:
        pairs = qrels_table(answers, options, dataset)
        return bytes(parquet_bytes(pairs)) if suffix == ".parquet" else for_spreadsheets(pairs).write_csv().encode()
    if form == LABEL_STUDIO:
        tasks = label_studio_tasks(answers.table, answers.items, answers.adjudicated, options.pictures)
        return (json.dumps(tasks, ensure_ascii=False, indent=1) + "\n").encode()
    rows = answer_rows(answers)
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    for row in rows:
        row |= {"labels": "; ".join(row["labels"]), "metrics": json.dumps(row["metrics"], ensure_ascii=False)}
    schema = dict.fromkeys(_COLUMNS, pl.String) | {"rating": pl.Float64, "seconds": pl.Float64}
    return for_spreadsheets(pl.DataFrame(rows, schema=schema)).write_csv().encode()


def qrels_table(answers: ProjectAnswers, options: ExportOptions, dataset: Dataset | None = None) -> pl.DataFrame:
    """The judged pairs of a project (see :data:`PAIR_COLUMNS`), with those of the dataset where there is one.

    The dataset's own pairs have the truth grade unless somebody judged them.
    """
    form, grades = answers.project.form, dict[str, float]()
    for pair in options.grade:
        label, equals, number = pair.rpartition("=")
        try:
            grades[label] = float(number)
        except ValueError:
            equals = ""
        if not equals or not label or not 0 <= grades[label] < float("inf"):
            raise UsageError(
                f"{argument('grade')} {pair!r} is not LABEL=NUMBER", fix="write, for example, good=1", option="grade"
            )
    table = judged_by(answers.table, options.source, (REAL,))
    final = answers.adjudicated if options.source == PERSON else {}
    pairs = judged_pairs(table, answers.pairs, form, options.rule, grades=grades, adjudicated=final)
    if not pairs.height:
        raise UsageError(
            "no judged item names an image and a caption: there is nothing to export as qrels",
            fix=f"judge items of a run or of a table of pairs first, or pass {argument('form', ANSWERS)}",
        )
    if dataset is None:
        return pairs
    highest = options.truth_grade
    if highest is None and options.rule == "rating" and form.rating is not None:
        highest = float(form.rating.high)
    grade = max(label_grades(form, grades).values()) if highest is None else highest
    for image in pairs["image"]:
        if image not in dataset.image_rows:
            problem = f"image {image!r} was judged, but is not in {dataset.name}"
            raise InputError(problem, fix="pass the dataset of the items")
    already = set(pairs.select("image", "caption").iter_rows())
    others = [
        (image, caption, None, None, grade, "ground truth")
        for image, caption in dataset.captions.select("image", "caption").iter_rows()
        if (image, caption) not in already
    ]
    return pl.concat([pairs, pl.DataFrame(others, schema=PAIR_COLUMNS, orient="row")])
