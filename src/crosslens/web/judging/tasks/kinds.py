"""The kinds of task: failure labels (EXPL), caption validity and pair survey (IMP), graded relevance."""

from __future__ import annotations

from dataclasses import dataclass

from crosslens.core import UnknownNameError
from crosslens.web.judging.tasks.form import AnswerForm, AnswerLabel, RatingScale, TextField


@dataclass(frozen=True)
class TaskKind:
    """A task with the answers and guidelines that a project starts with."""

    name: str
    title: str
    form: AnswerForm
    guidelines: str


FAILURES = TaskKind(
    "failures",
    "Causes of retrieval failures",
    AnswerForm(
        question="What does the retrieved picture get wrong about the query?",
        labels=(
            AnswerLabel("object_class", "Object class", "1", "Another kind of object than the one in the query."),
            AnswerLabel("colour", "Colour", "2", "An object has another colour."),
            AnswerLabel("count", "Count", "3", "More or fewer objects than the query says."),
            AnswerLabel("action", "Action", "4", "Somebody or something does something else."),
            AnswerLabel("size", "Size", "5", "An object is larger or smaller than the query says."),
            AnswerLabel("details", "Details", "6", "Place, clothing, material, background or other details differ."),
            AnswerLabel(
                "successful_alternative",
                "Successful alternative",
                "7",
                "Nothing is wrong: the retrieved picture fits the query as well.",
                alone=True,
            ),
        ),
        several=True,
        rating=RatingScale(1, 10, "How well does the retrieved picture fit the query?"),
    ),
    """Read the query first, then look at the retrieved picture.

Choose every cause that applies: a picture can show the wrong object in the wrong colour. Judge only what the query \
says; what it does not mention cannot be wrong. Where the retrieved picture fits the query, choose “Successful \
alternative”, even if another picture was expected. If a true image is shown, it is the picture that the query \
belongs to: compare with it, and judge the retrieved one.

Then rate how well the retrieved picture fits the query, from 1 (not at all) to 10 (perfectly). Where several causes \
apply, the rating is usually lower.""",
)

VALIDITY = TaskKind(
    "validity",
    "Caption validity",
    AnswerForm(
        question="Is this a valid caption of the picture?",
        labels=(
            AnswerLabel("good", "Good", "1", "The caption can be said of the picture, also in a figurative sense."),
            AnswerLabel("bad", "Bad", "2", "The caption does not belong to the picture, or contains a mistake."),
            AnswerLabel("unsure", "Unsure", "3", "You cannot tell, for example because you do not know a name."),
        ),
        text=TextField("Corrected caption"),
    ),
    """A good caption need not describe what is visible word by word. It may tell what the picture is about, what it \
means or how it feels, as long as somebody could reasonably write it below this picture.

Choose “Bad” where the caption belongs to another picture, names something wrong, or cannot be read. If a small change \
makes it right, write the corrected caption; otherwise leave the field empty.

Choose “Unsure” rather than guess.""",
)

PAIRS = TaskKind(
    "pairs",
    "Pair survey",
    AnswerForm(
        question="Do picture and text go together?",
        labels=(
            AnswerLabel("good", "Good pair", "1", "The text can be said of the picture."),
            AnswerLabel("bad", "Bad pair", "2", "The text has nothing to do with the picture."),
        ),
    ),
    """Each page shows a picture and a text. Some pairs are good, some are bad, in no particular order.

A pair is good if somebody could reasonably use the text for this picture, literally or figuratively. It is bad if the \
text has nothing to do with the picture. Answer by your first impression; there is no need to look anything up.""",
)

RELEVANCE = TaskKind(
    "relevance",
    "Graded relevance",
    AnswerForm(
        question="How relevant is the result for the query?",
        labels=(
            AnswerLabel("0", "Not relevant", "0", "Shows nothing of what the query asks for.", grade=0.0),
            AnswerLabel("1", "Somewhat relevant", "1", "Shares the topic, but not what matters.", grade=1.0),
            AnswerLabel("2", "Mostly relevant", "2", "Right in what matters, wrong or missing in details.", grade=2.0),
            AnswerLabel("3", "Fully relevant", "3", "Everything in the query holds.", grade=3.0),
        ),
    ),
    """Imagine that you searched for the query and got this result.

Give 3 if everything in the query holds, 2 if what matters is right and only details are wrong or missing, 1 if the \
result only shares the topic, 0 if it has nothing to do with the query. Judge each result by itself, not against the \
one before.""",
)

TASKS = {kind.name: kind for kind in (FAILURES, VALIDITY, PAIRS, RELEVANCE)}


def task_kind(name: str) -> TaskKind:
    """The kind of task with that name."""
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    return TASKS[name]
