"""The originals of a benchmark: images drawn task by task until each task has its quota of well described ones."""

from __future__ import annotations

from collections.abc import Sequence

from crosslens.build.descriptions import DescriptionEditor, ImageDescription
from crosslens.build.selection import BenchmarkImage, ImageSelector, verdict_facts
from crosslens.core import random_stream


class OriginalSelector:
    """Draws images in an order that the seed decides; near duplicates of drawn ones are left out."""

    def __init__(self, images: ImageSelector, editor: DescriptionEditor) -> None:
        self.images, self.editor, self.candidates = images, editor, images.candidates
        self._open = dict(self.candidates.quotas)
        self._queues = self._shuffled()
        self._kept: dict[int, Sequence[ImageDescription]] = {}

    def select(self) -> list[BenchmarkImage]:
        """As many images as the quotas say. One that gets too few descriptions is dropped for the next of its task.

        Against all candidates an image is judged once. Against the selected images, each change of the selection can
        move each entropy, so all are judged again until a round drops none: then every description lies in the band of
        the gallery that v0 has in the end. A dropped image does not return, so the rounds come to an end.
        """
        against_selected = self.candidates.checks_selected
        batch = self._draw()
        while batch:
            dropped = self._judge(batch, log_kept=not against_selected)
            drawn = self._draw()
            batch = drawn if not against_selected else [*self._kept, *drawn] if dropped else []
        if against_selected:
            for image, descriptions in self._kept.items():
                self._log(image, descriptions)
        return [
            BenchmarkImage(image, "original", None, self.candidates.tasks[image], tuple(self._kept[image]))
            for image in sorted(self._kept)
        ]

    def _judge(self, batch: Sequence[int], *, log_kept: bool) -> set[int]:
        """Settle the descriptions of these images; those with too few are dropped, and returned."""
        settled = self.editor.settle(batch)
        dropped = {image for image in batch if len(settled[image]) < self.candidates.settings.descriptions}
        for image in batch:
            if image in dropped:
                self.images.drop_original(image)
                self._open[self.candidates.tasks[image]] += 1
                self._kept.pop(image, None)
            else:
                self._kept[image] = settled[image]
            if image in dropped or log_kept:
                self._log(image, settled[image])
        self.editor.release(dropped)
        return dropped

    def _draw(self) -> list[int]:
        """The next images of every task below its quota.

        First those that are not reserved as confusables and have a confusable themselves; where these are too few,
        those whose original can have another confusable, and in the end those that have none.
        """
        batch = []
        for move, alone in ((False, False), (True, False), (False, True)):
            for task, queue in self._queues.items():
                waiting = []
                while self._open[task] and queue:
                    image = queue.pop(0)
                    taken = self.images.take_original(image, move=move, alone=alone)
                    if taken:
                        batch.append(image)
                        self._open[task] -= 1
                    elif taken is None:
                        waiting.append(image)
                queue[:0] = waiting
        return batch

    def _shuffled(self) -> dict[str, list[int]]:
        """The images of each task in the order in which they are tried."""
        queues: dict[str, list[int]] = {}
        for image, task in enumerate(self.candidates.tasks):
            queues.setdefault(task, []).append(image)
        seed = self.candidates.settings.seed
        return {
            task: [queue[index] for index in random_stream(seed, "recos", "originals", task).permutation(len(queue))]
            for task, queue in sorted(queues.items())
        }

    def _log(self, image: int, descriptions: Sequence[ImageDescription]) -> None:
        facts = verdict_facts(descriptions, self.candidates.settings.descriptions)
        self.images.log("original", image=self.candidates.ids[image], task=self.candidates.tasks[image], **facts)
