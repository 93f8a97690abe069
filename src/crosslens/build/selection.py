"""Which images are in a benchmark: the originals, a confusable for each, and similar ones around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosslens.analyze.near_duplicates import Likeness
from crosslens.build.candidates import Candidates
from crosslens.build.descriptions import Description
from crosslens.build.log import DecisionLog
from crosslens.core.seeds import stream

Settle = Callable[[Sequence[int]], dict[int, list[Description]]]
_SHOWN = 5  # how many images passed over are named in one entry


@dataclass(frozen=True)
class Member:
    """An image of the benchmark: what it is there for, and because of which other."""

    image: int
    role: str
    of: int | None
    task: str
    descriptions: tuple[Description, ...] = ()


class Chooser:
    """Chooses images one after the other; none twice, no picture twice."""

    def __init__(self, candidates: Candidates, log: DecisionLog) -> None:
        self.candidates, self.log = candidates, log
        self.chosen: dict[int, str] = {}

    def originals(self, settle: Settle, release: Callable[[set[int]], None]) -> list[Member]:
        """As many images as are wanted, evenly over the tasks, in an order that the seed decides.

        An image whose descriptions cannot be brought into the band is dropped, and the next of its task takes its turn.
        """
        queues, wanted = self._queues(), self._quotas()
        found: list[Member] = []
        while batch := self._next(queues, wanted):
            settled = settle(batch)
            dropped = set()
            for image in batch:
                descriptions = settled[image]
                enough = len(descriptions) >= self.candidates.settings.descriptions
                task = self.candidates.tasks[image]
                if enough:
                    found.append(Member(image, "original", None, task, tuple(descriptions)))
                else:
                    dropped.add(image)
                    del self.chosen[image]
                    wanted[task] += 1
                self.log(
                    "original",
                    image=self.candidates.ids[image],
                    task=task,
                    verdict="kept" if enough else "dropped",
                    descriptions=[one.caption for one in descriptions],
                    why=""
                    if enough
                    else f"{len(descriptions)} of {self.candidates.settings.descriptions} descriptions",
                )
            release(dropped)
        return sorted(found, key=lambda one: one.image)

    def confusables(self, originals: Sequence[Member]) -> list[tuple[Member, int]]:
        """For each original the nearest image of its source that is neither chosen nor the same picture."""
        found = []
        for original in originals:
            passed: list[dict[str, object]] = []
            for image, cosine in self.candidates.alike(original.image):
                why = self._refuse(image)
                if not why:
                    self.chosen[image] = "confusable"
                    found.append((original, image))
                    self._log_confusable(original, image, cosine, passed)
                    break
                passed.append({"image": self.candidates.ids[image], "cosine": cosine, "why": why})
            else:
                self._log_confusable(original, None, None, passed)
        return found

    def similar(self, around: Sequence[Member]) -> list[Member]:
        """The nearest images of the source of each, as many as are wanted; then merged, each picture once."""
        found = []
        inside = dict(self.chosen)
        for one in around:
            near: list[tuple[int, float]] = []
            for image, cosine in self.candidates.alike(one.image):
                if len(near) == self.candidates.settings.similar:
                    break
                if image not in inside:
                    near.append((image, cosine))
            taken, refused = [], []
            for image, cosine in near:
                name = self.candidates.ids[image]
                if why := self._refuse(image):
                    refused.append({"image": name, "cosine": cosine, "why": why})
                else:
                    self.chosen[image] = "similar"
                    found.append(Member(image, "similar", one.image, one.task))
                    taken.append({"image": name, "cosine": cosine})
            self.log("similar", image=self.candidates.ids[one.image], taken=taken, passed_over=refused)
        return found

    def forget(self, image: int) -> None:
        """The image is not in the benchmark after all."""
        del self.chosen[image]

    def _queues(self) -> dict[str, list[int]]:
        """The images of each task in the order in which they have their turn."""
        queues: dict[str, list[int]] = {}
        for image, task in enumerate(self.candidates.tasks):
            queues.setdefault(task, []).append(image)
        seed = self.candidates.settings.seed
        return {
            task: [queue[place] for place in stream(seed, "recos", "originals", task).permutation(len(queue))]
            for task, queue in sorted(queues.items())
        }

    def _quotas(self) -> dict[str, int]:
        """How many originals each task should have: evenly, and what a small task lacks goes to the others."""
        counts: dict[str, int] = {}
        for task in sorted(self.candidates.tasks):
            counts[task] = counts.get(task, 0) + 1
        left = self.candidates.settings.originals or max(1, len(self.candidates.ids) // 3)
        quotas = dict.fromkeys(counts, 0)
        while left and (open_tasks := [task for task in counts if quotas[task] < counts[task]]):
            for task in open_tasks[:left]:
                quotas[task] += 1
            left -= min(left, len(open_tasks))
        return quotas

    def _next(self, queues: dict[str, list[int]], wanted: dict[str, int]) -> list[int]:
        """The next images of every task that still wants some, without pictures that are there already."""
        batch = []
        for task, queue in queues.items():
            while wanted[task] and queue:
                image = queue.pop(0)
                twin = self.candidates.duplicates.among(image, self.chosen)
                if twin is not None:
                    self.log("duplicate", image=self.candidates.ids[image], **self._named(*twin))
                    continue
                self.chosen[image] = "original"
                batch.append(image)
                wanted[task] -= 1
        return batch

    def _refuse(self, image: int) -> str:
        """Why an image cannot be chosen; empty if it can."""
        if image in self.chosen:
            return f"already there ({self.chosen[image]})"
        twin = self.candidates.duplicates.among(image, self.chosen)
        if twin is None:
            return ""
        named = self._named(*twin)
        return f"the same picture as {named['of']} (by {named['by']}: {named['number']:g})"

    def _named(self, other: int, why: Likeness) -> dict[str, object]:
        return {"of": self.candidates.ids[other], "by": why.by, "number": round(why.number, 4)}

    def _log_confusable(
        self, original: Member, image: int | None, cosine: float | None, passed: list[dict[str, object]]
    ) -> None:
        self.log(
            "confusable",
            image=self.candidates.ids[original.image],
            confusable=None if image is None else self.candidates.ids[image],
            cosine=cosine,
            passed_over=passed[:_SHOWN],
            passed_over_in_all=len(passed),
        )
