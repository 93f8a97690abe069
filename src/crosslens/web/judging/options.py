"""Options of judging: the database, a new project, imports, exports, questions to models. Imports no library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crosslens.core import Options, UsageError, option

DATABASE_FILE = "judging.sqlite"
"""Where judgements are kept in a served folder."""


@dataclass(frozen=True)
class JudgingFolder(Options, group="Input"):
    """The folder that is served, and the database of its projects."""

    folder: Path = option(Path("runs"), "The folder that crosslens serve shows.", metavar="FOLDER")
    database: str | None = option(None, "Where judgements are kept. [default: SQLite in the folder]", metavar="URL")

    @property
    def address(self) -> str | Path:
        return self.database or self.folder / DATABASE_FILE


@dataclass(frozen=True)
class ProjectOptions(Options, group="Judging"):
    """What is asked in a project, and how items are given out."""

    task: str = option(
        "failures",
        "What is judged: failures, validity, pairs or relevance.",
        choices=("failures", "validity", "pairs", "relevance"),
    )
    overlap: int = option(2, "How many people judge each item.", minimum=1)
    seed: int = option(0, "Decides the order of items.")
    per_person: int | None = option(None, "Most items for one person. [default: all]", minimum=1)
    check_every: int = option(10, "One attention check among so many items.", minimum=1)
    with_truth: bool = option(False, "Failures: show the true image beside the retrieved one.")
    labels: Path | None = option(
        None, "The question, labels, rating and text field as TOML or JSON. [default: the task's]"
    )
    guidelines: Path | None = option(None, "What judges are told, as text. [default: the task's]")


CANDIDATES, SURVEY = "candidates", "survey"


@dataclass(frozen=True)
class ImportOptions(Options, group="Judging"):
    """Which items are taken from a source."""

    direction: str | None = option(None, "Of a run: i2t or t2i. [default: t2i if the run has it]")
    limit: int | None = option(None, "Draw so many of the items. [default: all]", minimum=1)
    seed: int = option(0, "Decides which items are drawn.")
    part: str = option(
        CANDIDATES, "IMP: the captions of a build to validate, or the survey of a table that analyze difficulty wrote.",
        metavar=f"{CANDIDATES}|{SURVEY}", choices=(CANDIDATES, SURVEY),
    )  # fmt: skip
    model: str | None = option(
        None, "Survey: whose score[…] says which pairs are hardest. [default: the only one]", metavar="NAME"
    )
    hardest: int = option(100, "Survey: how many hard pairs, those with the lowest score.", minimum=1)
    distractors: int = option(25, "Survey: how many true negatives are mixed in.", minimum=0)
    rejected: Path | None = option(
        None, "Survey: captions that people rejected as true negatives. [default: captions of other images]"
    )


ANSWERS, QRELS, LABEL_STUDIO, IMP_SHEETS = "answers", "qrels", "label-studio", "imp"
EXPORT_FORMS = (ANSWERS, QRELS, LABEL_STUDIO, IMP_SHEETS)


@dataclass(frozen=True)
class ExportOptions(Options, group="Judging"):
    """How judgements become a file."""

    form: str | None = option(
        None, "answers (.csv, .jsonl), qrels (.parquet, .csv), label-studio (.json), or imp (the folder of build imp). "
        "[default: by the ending]", choices=EXPORT_FORMS,
    )  # fmt: skip
    rule: str = option(
        "majority", "Qrels: the grade that most judges gave, the mean of grades, or the mean rating.",
        metavar="majority|mean|rating", choices=("majority", "mean", "rating"),
    )  # fmt: skip
    grade: tuple[str, ...] = option(
        (), "Qrels: the grade of a label, instead of the project's; may be repeated.", metavar="LABEL=NUMBER"
    )
    truth_grade: float | None = option(
        None, "Qrels: the grade of the dataset's own pairs. [default: the highest grade]", minimum=0
    )
    source: str = option(
        "person", "Qrels, imp: whose judgements; those of models are never mixed with people's.",
        metavar="person|model", choices=("person", "model"),
    )  # fmt: skip
    pictures: str = option(
        "", "Label Studio: what stands before DATASET/IMAGE in the address of a picture.", metavar="ADDRESS"
    )


@dataclass(frozen=True)
class AskingOptions(Options, group="Execution"):
    """How often and how fast a model is asked."""

    workers: int = option(4, "Requests at a time.", minimum=1, maximum=256)
    per_minute: int | None = option(None, "At most so many requests a minute. [default: no limit]", minimum=1)
    max_requests: int | None = option(
        None, "Stop after so many requests; the same command goes on later. [default: no limit]", minimum=1
    )
    seed: int = option(0, "Seed that is sent with every request.")
    price: tuple[float, float] = option(
        (0.0, 0.0), "Price of a million tokens sent and of a million received; the cost is shown.", metavar="IN OUT"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= price < float("inf") for price in self.price):
            raise UsageError(
                f"the price is {self.price[0]:g} {self.price[1]:g}", fix="a price must be at least 0", option="price"
            )
