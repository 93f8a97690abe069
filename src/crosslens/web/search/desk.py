"""What the addresses of live search share: the datasets, the encoders, and what is being prepared."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from crosslens.core import CrosslensError, UnknownNameError
from crosslens.web.jobs import DONE, FAILED, JobProgress, carry_out
from crosslens.web.search.encoders import EncoderChoice, EncoderWorker, encoder_choices
from crosslens.web.search.search import SIDES, Question
from crosslens.web.services import Services


class SearchDesk:
    """Questions become searches here; the client names datasets and encoders by ids only."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.worker = EncoderWorker(services.settings.cache)
        self._preparing: dict[tuple[str, str, str], JobProgress] = {}
        self._lock = Lock()

    def encoders(self) -> list[EncoderChoice]:
        """All encoders that can be chosen now."""
        return encoder_choices(self.services.library, self.services.settings.models)

    def encoder(self, name: str) -> EncoderChoice:
        """An encoder by its id."""
        known = {choice.id: choice for choice in self.encoders()}
        if name not in known:
            raise UnknownNameError("encoder", name, known)
        return known[name]

    def question(self, dataset: str, encoder: str, among: str, depth: int) -> Question:
        """A question without its sentence or picture."""
        data = self.services.library.dataset(dataset)
        choice = self.encoder(encoder)
        return Question(data, choice, among, depth, folders=self._folders(dataset, choice))

    def prepare(self, dataset: str, encoder: str, among: str) -> JobProgress:
        """Load the encoder and the vectors of the dataset in the background; how far that is.

        A failure is reported once, and tried again when asked for the next time.
        """
        question = self.question(dataset, encoder, among, 1)
        side = SIDES[among]
        if self.worker.has(question.encoder, question.dataset, side):
            return JobProgress(DONE)
        key = (dataset, encoder, among)
        with self._lock:
            known = self._preparing.get(key)
            if known is not None and known.state != DONE:
                if known.state == FAILED:
                    del self._preparing[key]
                return known
            progress = JobProgress(is_stopped=self.worker.stopped.is_set)
            self.worker.submit(
                lambda: carry_out(
                    progress,
                    lambda: self.worker.gallery(question.encoder, question.dataset, side, question.folders, progress),
                )
            )
            self._preparing[key] = progress
            return progress

    def _folders(self, dataset: str, choice: EncoderChoice) -> tuple[Path, ...]:
        own = [] if choice.image_folder is None else [choice.image_folder]
        try:
            known = self.services.library.image_folders(dataset)
        except CrosslensError:
            known = []
        return tuple(dict.fromkeys([*self.services.settings.image_folders, *own, *known]))
