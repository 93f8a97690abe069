"""A served folder with a judged project, for the pages of its owner."""

from __future__ import annotations

from pathlib import Path

from crosslens.web import import_items
from crosslens.web.judging.accounts import model_account
from crosslens.web.judging.database.judgements import record_judgement
from crosslens.web.judging.database.projects import ProjectSettings, create_project, join
from crosslens.web.judging.tasks import Answer, ItemContent, NewItem, ShownText
from tests.web.conftest import NASTY, fill
from tests.web.judging.samples import add_items, items, person
from tests.web.judging.site import Site


class Owned:
    """Failures of a run, judged by three people and a model; about two items they disagree."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(fill(folder))
        database = self.site.database
        self.owner = self.site.owner()
        settings = ProjectSettings(with_truth=True)
        self.project = create_project(database, "Failures of model a", "failures", overlap=3, settings=settings).id
        join(database, self.project, self.owner, "owner")
        import_items(database, self.project, folder / "model-a", None)
        attention_check = NewItem(ItemContent(texts=(ShownText(NASTY, "Query"),)), "check", {"labels": ["colour"]})
        add_items(database, self.project, [attention_check])
        self.people = {name: person(database, name, project=self.project) for name in ("ann", "bob", NASTY[:20])}
        self.items = [item for item in items(database, self.project) if item.kind == "real"]
        self.disputed = [str(item.id) for item in self.items[:2]]
        vlm = model_account(database, "qwen2.5-vl").id
        for at, item in enumerate(items(database, self.project)):
            for who, account in enumerate(self.people.values()):
                labels: tuple[str, ...] = ("colour", "count") if at % 2 else ("details",)
                if str(item.id) in self.disputed and who:
                    labels = ("successful_alternative",) if who == 1 else ("size",)
                answer = Answer(labels, min(10, 1 + at % 8 + who))
                record_judgement(database, item.id, account, answer, source="person", seconds=2.0 + who)
            record_judgement(database, item.id, vlm, Answer(("details",), 4), source="model")

    def address(self, path: str = "") -> str:
        return f"/projects/{self.project}/owner{path}"
