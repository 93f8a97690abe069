"""The JSON of the map."""

from __future__ import annotations

from pydantic import BaseModel

from crosslens.web.map.service import MapState


class ColouringName(BaseModel):
    """Something that points can be coloured by."""

    name: str
    label: str


class Region(BaseModel):
    """A cluster of points: its words, how many images and captions, its centre."""

    number: int
    name: str
    images: int
    captions: int
    x: float
    y: float


class MapAnswer(BaseModel):
    """Where the map of a run stands.

    ``state`` is ``absent`` (not computed), ``waiting``, ``running`` (with stage, done and total; total 0: unknown),
    ``failed``, ``impossible`` (both with the reason) or ``ready`` (with all the rest).
    """

    state: str
    method: str
    methods: list[str]
    reason: str = ""
    fix: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    points: int = 0
    images: int = 0
    colourings: list[ColouringName] = []
    regions: list[Region] = []


class MapItemAnswer(BaseModel):
    """A point; the addresses are null where there is no such page or picture."""

    row: int
    kind: str
    id: str
    text: str | None
    image: str | None
    picture: str | None
    page: str | None


class ItemsAnswer(BaseModel):
    """Several points."""

    items: list[MapItemAnswer]


class RowsAnswer(BaseModel):
    """The points that a text occurs in."""

    rows: list[int]


def map_answer(state: MapState, methods: list[str], colourings: list[tuple[str, str]]) -> MapAnswer:
    """The JSON of a state."""
    answer = MapAnswer(state=state.state, method=state.method, methods=methods, reason=state.reason)
    if state.progress is not None:
        answer.stage, answer.done, answer.total = state.progress.stage, state.progress.done, state.progress.total
        answer.seconds, answer.fix = round(state.progress.seconds, 1), state.progress.fix
    if state.drawn is not None:
        answer.points, answer.images = len(state.drawn), len(state.drawn.image_ids)
        answer.colourings = [ColouringName(name=name, label=label) for name, label in colourings]
        answer.regions = [
            Region(**{**region._asdict(), "x": region.centre[0], "y": region.centre[1]})
            for region in state.drawn.regions
        ]
    return answer
