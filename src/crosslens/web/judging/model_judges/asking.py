"""Asks a model about items: several at a time, no faster and no more often than allowed, each answer kept at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from crosslens.core import (
    Cancelled,
    Endpoint,
    InvalidAnswer,
    Message,
    RecordedAnswers,
    answers_of,
    derive_seed,
)
from crosslens.web.judging.database.model_requests import ModelRequests
from crosslens.web.judging.model_judges.prompts import Pictures, item_messages, read_item_answer, repair_message
from crosslens.web.judging.options import AskingOptions
from crosslens.web.judging.tasks.answers import Answer
from crosslens.web.judging.tasks.content import ItemContent
from crosslens.web.judging.tasks.form import AnswerForm

_REPAIRS = 2
_MOST_REPEATED = 2000  # characters of an unusable answer that are sent back to the model


@dataclass(frozen=True)
class ModelAnswer:
    """What a model said about the item of this number; no ``answer``: none that could be used, and why."""

    number: int
    answer: Answer | None
    seconds: float
    problem: str = ""


class _LimitReached(Exception):
    """No further request may be sent."""


@dataclass
class _Allowance:
    """How many requests may still be sent, and when the next one."""

    options: AskingOptions
    sent: int = 0
    next_at: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, stop: threading.Event) -> None:
        """Wait for the turn of a request."""
        with self.lock:
            if self.options.max_requests is not None and self.sent >= self.options.max_requests:
                raise _LimitReached
            self.sent += 1
            now = time.monotonic()
            turn = max(now, self.next_at)
            self.next_at = turn + (60 / self.options.per_minute if self.options.per_minute else 0)
        if turn > now and stop.wait(turn - now):
            raise Cancelled


class ModelJudge:
    """A model behind an endpoint; with ``record`` its answers are kept there, and not asked for again."""

    def __init__(
        self,
        endpoint: Endpoint,
        form: AnswerForm,
        guidelines: str,
        pictures: Pictures,
        options: AskingOptions | None = None,
        record: RecordedAnswers | None = None,
        *,
        replay_only: bool = False,
    ) -> None:
        self._endpoint, self._form, self._guidelines, self._pictures = endpoint, form, guidelines, pictures
        self._options, self._record, self._replay_only = options or AskingOptions(), record, replay_only
        self._allowance = _Allowance(self._options)

    @property
    def sent(self) -> int:
        """How many requests went to the endpoint."""
        return self._allowance.sent

    @property
    def requests(self) -> ModelRequests:
        """What asking took so far."""
        tokens = self._endpoint.counter.tokens
        return ModelRequests(self.sent, tokens, tokens.cost(self._options.price) if any(self._options.price) else None)

    def messages(self, content: ItemContent) -> list[Message]:
        """The request about an item."""
        return item_messages(self._form, self._guidelines, content, self._pictures)

    def judge(self, contents: Sequence[ItemContent]) -> Iterator[ModelAnswer]:
        """What the model says about each item, as the answers arrive; ends early where the limit is reached."""

        def answer(endpoint: Endpoint, number: int) -> ModelAnswer | None:
            try:
                return self._judged(endpoint, number, contents[number])
            except _LimitReached:
                return None

        for _, judged in answers_of(self._endpoint, len(contents), answer, self._options.workers):
            if judged is not None:
                yield judged

    def _judged(self, endpoint: Endpoint, number: int, content: ItemContent) -> ModelAnswer:
        """Ask, and ask again with the reason where the answer cannot be used."""
        messages = self.messages(content)
        seed = derive_seed(self._options.seed, "judge") % 2**31
        started, problem = time.monotonic(), ""
        for _ in range(_REPAIRS + 1):
            said = self._ask(endpoint, messages, seed)
            try:
                return ModelAnswer(number, read_item_answer(self._form, said), time.monotonic() - started)
            except InvalidAnswer as unusable:
                problem = str(unusable)
                messages += [{"role": "assistant", "content": said[:_MOST_REPEATED]}, repair_message(problem)]
        return ModelAnswer(number, None, time.monotonic() - started, problem)

    def _ask(self, endpoint: Endpoint, messages: Sequence[Message], seed: int) -> str:
        if self._record is not None:
            known = self._record.known(messages, seed)
            if known is not None or self._replay_only:
                return known if known is not None else self._record.ask(None, messages, seed)
        self._allowance.take(endpoint.stop)
        return endpoint.ask(messages, seed) if self._record is None else self._record.ask(endpoint, messages, seed)


Keep = Callable[[int, Answer, float], None]
"""Keeps the answer to the item of this number, which took so many seconds."""


@dataclass(frozen=True)
class AskingOutcome:
    """What became of the items: answered now, not usable, and left for the next time."""

    answered: int
    unusable: dict[int, str]
    left: int
    requests: int


def ask_and_keep(
    judge: ModelJudge, contents: Sequence[ItemContent], keep: Keep, done: Callable[[], None]
) -> AskingOutcome:
    """Ask about every item and keep each answer as soon as it is there; ``done`` is called after each."""
    answered, unusable = 0, {}
    for judged in judge.judge(contents):
        if judged.answer is None:
            unusable[judged.number] = judged.problem
        else:
            keep(judged.number, judged.answer, judged.seconds)
            answered += 1
        done()
    return AskingOutcome(answered, unusable, len(contents) - answered - len(unusable), judge.sent)
