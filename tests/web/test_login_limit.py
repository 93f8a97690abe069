"""The limit on wrong passwords: by address, by account, atomically, and never for what others did."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from crosslens.web import WebSettings, create_app
from crosslens.web.access import (
    LONGEST_DELAY,
    LONGEST_WAIT,
    OWN_WAIT,
    THIS_COMPUTER,
    LoginLimit,
    TooManyAttempts,
    address_of,
)
from tests.web.asking import Answered, ask, together

PASSWORD = "a long enough password"


def request_from(address: str, *headers: str) -> Request:
    given = [(name.encode(), b"x") for name in headers]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": given, "client": (address, 1)})


class Guesser:
    """A limit whose clock is moved by hand; what it waits is noted, and passes at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.limit = LoginLimit(lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def guess(self, address: str, account: str = "olga", *, right: bool = False, headers: tuple[str, ...] = ()) -> str:
        """``checked`` or ``refused``."""

        async def attempt() -> str:
            try:
                async with self.limit.attempt(request_from(address, *headers), account) as attempt:
                    attempt.is_right = right
            except TooManyAttempts:
                return "refused"
            return "checked"

        return asyncio.run(attempt())


def test_an_address_waits_longer_each_time() -> None:
    guesser = Guesser()
    accounts = iter(range(1000))  # each another, so that only the address counts
    assert [guesser.guess("198.51.100.1", f"a{next(accounts)}") for _ in range(12)] == ["checked"] * 10 + [
        "refused"
    ] * 2
    for wait in (60.0, 120.0, 240.0):
        guesser.now += wait - 1
        assert guesser.guess("198.51.100.1", f"a{next(accounts)}", right=True) == "refused"
        guesser.now += 1.5
        assert guesser.guess("198.51.100.1", f"a{next(accounts)}") == "checked"
        assert guesser.guess("198.51.100.1", f"a{next(accounts)}") == "refused"
    assert guesser.guess("198.51.100.2", "a1") == "checked", "another address does not wait"
    guesser.now += LONGEST_WAIT
    assert guesser.guess("198.51.100.1", "a1", right=True) == "checked", "nothing is remembered for ever"


def test_right_passwords_are_not_counted() -> None:
    guesser = Guesser()
    assert {guesser.guess("198.51.100.1", right=True) for _ in range(50)} == {"checked"}
    assert not guesser.slept
    assert not guesser.limit._counts, "nothing is kept of them"


def test_a_right_password_does_not_excuse_wrong_ones() -> None:
    """Who has an account cannot use it to go on guessing at another."""
    guesser = Guesser()
    outcomes = [(guesser.guess("198.51.100.1", "victim"), guesser.guess("198.51.100.1", "own", right=True))
                for _ in range(20)]  # fmt: skip
    assert [victim for victim, _ in outcomes].count("checked") == 10


def test_guesses_from_elsewhere_only_delay_the_owner() -> None:
    guesser = Guesser()
    for n in range(40):
        guesser.guess(f"198.51.100.{n}", "olga")
    guesser.slept.clear()
    assert guesser.guess("127.0.0.1", right=True) == "checked"
    assert not guesser.slept, "this computer is not even delayed"
    assert guesser.guess("192.0.2.7", right=True) == "checked"
    assert guesser.slept == [LONGEST_DELAY], "a new address is delayed, not refused"
    assert guesser.guess("192.0.2.7", right=True) == "checked"
    assert guesser.slept == [LONGEST_DELAY], "it is known from now on"
    assert guesser.guess("192.0.2.8", "anna", right=True) == "checked"
    assert guesser.slept == [LONGEST_DELAY], "other accounts are not under attack"


def test_under_attack_an_address_has_three_guesses() -> None:
    guesser = Guesser()
    for n in range(10):
        guesser.guess(f"198.51.100.{n}", "olga")
    assert [guesser.guess("192.0.2.7") for _ in range(5)] == ["checked"] * 3 + ["refused"] * 2
    assert guesser.slept == [0.5, 1.0, 2.0], "the delay grows"
    assert guesser.guess("192.0.2.7", "anna", right=True) == "checked"


def test_this_computer_waits_a_few_seconds_only() -> None:
    guesser = Guesser()
    assert [guesser.guess("127.0.0.1") for _ in range(40)].count("checked") == 10
    guesser.now += OWN_WAIT
    assert guesser.guess("::1", right=True) == "checked"
    for _ in range(30):
        guesser.guess("127.0.0.1", headers=("x-forwarded-for",))
    assert guesser.guess("127.0.0.2", right=True) == "checked", "what a proxy passes on does not come from here"


@pytest.mark.parametrize(
    ("address", "headers", "counted"),
    [
        ("127.0.0.1", (), THIS_COMPUTER), ("127.9.9.9", (), THIS_COMPUTER), ("::1", (), THIS_COMPUTER),
        ("::ffff:127.0.0.1", (), THIS_COMPUTER),
        ("127.0.0.1", ("x-forwarded-for",), "a proxy on this computer"),
        ("127.0.0.1", ("forwarded",), "a proxy on this computer"),
        ("127.0.0.1", ("x-real-ip",), "a proxy on this computer"), ("::1", ("via",), "a proxy on this computer"),
        ("203.0.113.9", (), "203.0.113.9"), ("::ffff:203.0.113.9", (), "203.0.113.9"),
        ("2001:db8:1:2:3::4", (), "2001:db8:1:2::/64"), ("2001:db8:1:2::ffff", (), "2001:db8:1:2::/64"),
        ("fe80::1%eth0", (), "fe80::/64"), ("203.0.113.9:5000", (), "203.0.113.9"),
        ("[2001:db8:1:2::9]:80", (), "2001:db8:1:2::/64"), ("unknown", (), "no address"), ("", (), "no address"),
        ("127.0.0.1:80", ("x-forwarded-for",), "a proxy on this computer"),
    ],
)  # fmt: skip
def test_whom_an_attempt_is_counted_for(address: str, headers: tuple[str, ...], counted: str) -> None:
    assert address_of(request_from(address, *headers)) == counted


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.web.access._MOST_KEPT", 50)
    guesser = Guesser()
    for n in range(300):
        guesser.guess(f"198.51.{n // 250}.{n % 250}", f"account {n}", right=n % 2 == 0)
    assert len(guesser.limit._counts) <= 52
    assert len(guesser.limit._known) <= 50


def at_once(count: int, *, right: bool) -> Counter[str]:
    """So many attempts of one address at the same time, each of which takes a while to be looked at."""
    limit = LoginLimit()

    async def attempt(n: int) -> str:
        try:
            async with limit.attempt(request_from("203.0.113.9"), f"account {n}") as attempt:
                await asyncio.sleep(0.02)
                attempt.is_right = right
        except TooManyAttempts:
            return "refused"
        return "checked"

    async def every() -> list[str]:
        return list(await asyncio.gather(*(attempt(n) for n in range(count))))

    return Counter(asyncio.run(every()))


def test_attempts_at_once_are_no_more_than_the_limit() -> None:
    assert at_once(60, right=False) == {"checked": 10, "refused": 50}


def test_right_passwords_at_once_take_turns() -> None:
    assert at_once(60, right=True) == {"checked": 60}


def test_a_guess_that_is_cancelled_counts() -> None:
    limit = LoginLimit()

    async def hang_up() -> None:
        async def attempt() -> None:
            async with limit.attempt(request_from("203.0.113.9"), "olga"):
                await asyncio.sleep(10)

        task = asyncio.create_task(attempt())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for _ in range(10):
        asyncio.run(hang_up())
    with pytest.raises(TooManyAttempts, match="too many wrong passwords"):
        asyncio.run(hang_up_now(limit))


async def hang_up_now(limit: LoginLimit) -> None:
    async with limit.attempt(request_from("203.0.113.9"), "olga"):
        pass


# The shared password.


def test_the_shared_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosslens.web.access.FIRST_DELAY", 0.01)
    app = create_app(WebSettings(tmp_path, cache=tmp_path, host="0.0.0.0", password=PASSWORD))

    def get(password: str, address: str, *headers: tuple[str, str]) -> Coroutine[Any, Any, Answered]:
        basic = base64.b64encode(f"me:{password}".encode()).decode()
        return ask(app, "/api/runs", headers=[("authorization", f"Basic {basic}"), *headers], address=address)

    guesses = asyncio.run(together(*(get(f"guess {n}", "203.0.113.9") for n in range(60))))
    assert Counter(guess.status for guess in guesses) == {401: 10, 429: 50}
    refused = next(guess for guess in guesses if guess.status == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert asyncio.run(get(PASSWORD, "203.0.113.9")).status == 429, "guessing goes on no faster with the right one"
    assert asyncio.run(get(PASSWORD, "127.0.0.1")).status == 200, "the owner comes in from the machine itself"
    forged = [asyncio.run(get("guess", "127.0.0.1", ("x-forwarded-for", f"10.0.0.{n}"))).status for n in range(30)]
    assert Counter(forged)[429] == 27, "nobody believes the header, and the password is under attack"
    assert asyncio.run(get(PASSWORD, "127.0.0.1")).status == 200
    pictures = asyncio.run(together(*(get(PASSWORD, "127.0.0.1") for _ in range(60))))
    assert {answer.status for answer in pictures} == {200}, "a page with many pictures asks for all of them at once"
