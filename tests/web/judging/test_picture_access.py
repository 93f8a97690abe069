"""Pictures are served to those whose project shows them: every picture, asked for by everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

import crosslens as cl
from crosslens.web import close_account, remove_member
from crosslens.web.judging.database.projects import create_project, join
from crosslens.web.judging.tasks import ItemContent, NewItem, ShownPicture, ShownText
from crosslens.web.library import dataset_id
from tests.tables import rest_slow
from tests.web.judging.samples import add_items, person
from tests.web.judging.site import Site, Visitor, addresses

NAMES = ("shown", "also shown", "kept/inside", "other")


def drawn(folder: Path, name: str) -> cl.Dataset:
    """Four pictures; the same ids in each dataset."""
    for image in NAMES:
        (folder / image).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (len(name), 90, 10 * len(image))).save(folder / f"{image}.png")
    plain = cl.Dataset.of({image: [f"{name} {image}"] for image in NAMES}, name=name)
    return replace(plain, images=plain.images.with_columns(file=plain.images["image"] + ".png"), home=folder)


@dataclass
class Served:
    site: Site
    datasets: dict[str, str]
    people: dict[str, int]
    projects: dict[str, int]

    def path(self, dataset: str, image: str) -> str:
        return f"/pictures/{quote(self.datasets[dataset], safe='')}/{quote(image, safe='')}"

    def visible(self, visitor: Visitor) -> set[tuple[str, str]]:
        """Which pictures a visitor gets; the others are not there."""
        answers = {(name, image): visitor.get(self.path(name, image)) for name in self.datasets for image in NAMES}
        for answer in answers.values():
            assert (answer.status_code == 200) == (answer.headers.get("content-type") == "image/jpeg")
        return {picture for picture, answer in answers.items() if answer.status_code == 200}


def make(folder: Path, **settings: Any) -> Served:
    data = [drawn(folder / name, name) for name in ("first", "second")]
    Site(folder / "runs", ["judging"]).owner()
    site = Site(folder / "runs", datasets=tuple(data), image_folders=(folder / "first", folder / "second"), **settings)
    ids = {dataset.name: dataset_id(dataset.name, dataset.fingerprint) for dataset in data}
    pictures_of = {"one": [("first", "shown"), ("first", "kept/inside")], "two": [("second", "also shown")]}
    projects, people = {}, {"owner of all": site.owner("second owner")}
    for name, pictures in pictures_of.items():
        projects[name] = create_project(site.database, name, "pairs").id
        content = ItemContent(tuple(ShownPicture(ids[d], image) for d, image in pictures), (ShownText("x"),))
        add_items(site.database, projects[name], [NewItem(content)])
        people[f"judge of {name}"] = person(site.database, f"judge {name}", project=projects[name])
    people["owner of one"] = person(site.database, "own", project=projects["one"], role="owner")
    people["judge of both"] = person(site.database, "both", project=projects["one"])
    join(site.database, projects["two"], people["judge of both"])
    people["judge of none"] = person(site.database, "none")
    return Served(site, ids, people, projects)


@pytest.fixture(scope="module", params=["0.0.0.0", "127.0.0.1"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with_pictures = make(tmp_path_factory.mktemp("pictures"), host=request.param)
    yield with_pictures
    with_pictures.site.database.close()


FIRST, SECOND = {("first", "shown"), ("first", "kept/inside")}, {("second", "also shown")}
EVERYTHING = {(dataset, image) for dataset in ("first", "second") for image in NAMES}
SEEN = {
    "owner of all": EVERYTHING, "judge of one": FIRST, "owner of one": FIRST, "judge of two": SECOND,
    "judge of both": FIRST | SECOND, "judge of none": set(),
}  # fmt: skip


def test_everybody_gets_the_pictures_of_their_projects_and_no_others(served: Served) -> None:
    for name, expected in SEEN.items():
        assert served.visible(served.site.visitor(served.people[name])) == expected, name
    nobody = served.site.visitor()
    if served.site.settings.is_local:  # the explorer of this computer, for which nobody logs in
        assert served.visible(nobody) == EVERYTHING
    else:
        assert served.visible(nobody) == set()


def test_a_picture_that_is_not_shown_looks_like_one_that_does_not_exist(served: Served) -> None:
    judge = served.site.visitor(served.people["judge of one"])
    hidden, missing = judge.get(served.path("second", "other")), judge.get(served.path("second", "no such image"))
    assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text)
    assert (hidden.status_code, hidden.json()["problem"]) == (404, "There is no such picture.")


GUESSES = (
    "/pictures/{second}/also%20shown", "/pictures/{second}/%61lso%20shown",
    "/pictures/{first}/../{second}/also%20shown", "/pictures/{first}/..%2F{second}%2Falso%20shown",
    "/pictures/{first}/kept%2F..%2Fother", "/pictures/{first}/other?size=96", "/pictures/{first}/other?size=1280",
    "/pictures//{first}/other", "/pictures/{first}//other", "/pictures/{first}/shown%00",
    "/pictures/{first}/other#shown", "/PICTURES/{first}/other", "/pictures/{first}/other/",
    "/pictures/{first}/other.png",
)  # fmt: skip


def test_guessed_addresses(served: Served) -> None:
    judge = served.site.visitor(served.people["judge of one"])
    for guess in GUESSES:
        answer = judge.get(guess.format(**served.datasets))
        assert answer.status_code in (403, 404, 422), guess
        assert not answer.headers.get("content-type", "").startswith("image/"), guess


@pytest.mark.parametrize("served", rest_slow(["0.0.0.0", "127.0.0.1"]), indirect=True)
def test_what_a_browser_keeps_is_for_one_session(served: Served) -> None:
    judge = served.site.visitor(served.people["judge of one"])
    account = person(served.site.database, "to be removed", project=served.projects["one"])
    join(served.site.database, served.projects["two"], account)
    removed = served.site.visitor(account)
    kept = judge.get(served.path("first", "shown"))
    assert kept.headers["cache-control"].startswith("private")
    assert kept.headers["vary"] == "Cookie"
    assert "etag" not in kept.headers, "nothing by which somebody else could ask whether it has changed"
    for header in ("If-None-Match", "If-Modified-Since", "Range"):
        value = {"If-None-Match": "*", "Range": "bytes=0-10"}.get(header, "Thu, 01 Jan 2099 00:00:00 GMT")
        answer = judge.client.get(served.path("second", "other"), headers={header: value})
        assert answer.status_code == 404
    assert served.visible(removed) == FIRST | SECOND
    remove_member(served.site.database, served.projects["two"], account)
    assert served.visible(removed) == FIRST
    close_account(served.site.database, account)
    assert served.visible(removed) == (EVERYTHING if served.site.settings.is_local else set())


def test_a_shared_password_shows_the_explorer_to_whoever_knows_it(tmp_path: Path) -> None:
    served = make(tmp_path, host="0.0.0.0", password="a long shared password")
    visitor = served.site.visitor(served.people["judge of one"])
    assert served.visible(visitor) == set()
    visitor.client.auth = ("anybody", "a long shared password")
    assert served.visible(visitor) == EVERYTHING
    served.site.database.close()


@pytest.mark.parametrize("served", rest_slow(["127.0.0.1", "0.0.0.0"]), indirect=True)
def test_no_other_address_gives_a_judge_a_picture(served: Served) -> None:
    """Whatever the application offers, asked for a picture of another project."""
    judge = served.site.visitor(served.people["judge of one"])
    values = {"dataset": served.datasets["second"], "image": "other", "project": str(served.projects["one"])}
    asked = 0
    for method, path in addresses(served.site.app.routes):
        if method == "GET":
            filled = re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: quote(values.get(match[1], "1"), safe=""), path)
            answer = judge.get(f"{filled}?dataset={quote(served.datasets['second'])}&id=other&size=96")
            kind = answer.headers.get("content-type", "")
            assert not (answer.status_code == 200 and kind.startswith(("image/", "application/octet"))), path
            asked += 1
    assert asked > 20
