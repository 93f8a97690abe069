"""How many tokens a model read and wrote, as its endpoint counts them."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Tokens of requests and of answers; ``uncounted`` answers came without a count."""

    sent: int = 0
    received: int = 0
    uncounted: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.sent + other.sent, self.received + other.received, self.uncounted + other.uncounted)

    def cost(self, prices: tuple[float, float]) -> float:
        """What they cost, at these prices of a million tokens sent and received."""
        return (self.sent * prices[0] + self.received * prices[1]) / 1e6


class TokenCounter:
    """Adds up the tokens of answers that arrive in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = Tokens()

    @property
    def tokens(self) -> Tokens:
        """All of them so far."""
        return self._tokens

    def add(self, raw: bytes) -> None:
        """Count the tokens of an answer."""
        tokens = tokens_of(raw)
        with self._lock:
            self._tokens += tokens


def tokens_of(raw: bytes) -> Tokens:
    """The tokens that an answer says it took."""
    try:
        usage = json.loads(raw)["usage"]
        sent, received = usage["prompt_tokens"], usage["completion_tokens"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return Tokens(uncounted=1)
    if not all(type(count) is int and 0 <= count < 2**53 for count in (sent, received)):
        return Tokens(uncounted=1)
    return Tokens(sent, received)
