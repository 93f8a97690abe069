"""The connections of the server: a request that does not become whole is given up, and there are only so many of them.

uvicorn itself waits for ever for the rest of a request, and for a browser that does not take its answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from crosslens.web.settings import WebSettings

_HEAD, _BODY = "head", "body"


class Connection(H11Protocol):
    """A connection to a browser, with times for what it sends and takes."""

    head_seconds = 10.0
    """From the connection, or the first byte of a further request, to the end of the request's head."""
    body_seconds = 20.0
    """From there to the end of its body, and a second more for every so many bytes of it:"""
    body_rate = 16_384
    answer_seconds = 60.0
    """For the browser to take some of an answer that waits for it."""
    most = 512
    """Connections at a time. A further one takes the place of one whose request is not whole, the oldest first; where
    there is none, of one whose answer waits to be taken."""

    waiting_for: str | None = None
    since = 0.0
    _received = 0
    _waiting_cycle: Any = None
    _timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            others = [other for other in self.connections if isinstance(other, Connection) and other is not self]
            # Nobody waits for their answer: the request is not whole, or the next one has not begun.
            idle = [other for other in others if other.waiting_for or other.timeout_keep_alive_task is not None]
            idle = idle or [other for other in others if other.flow.write_paused]
            if not idle:
                self._close(b"503 Service Unavailable")
                return
            oldest = min(idle, key=lambda other: (other.waiting_for == _BODY, other.since))
            self.connections.discard(oldest)  # at once: connection_lost comes after the next connection_made
            oldest.transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop(self._timer, self._answer_timer)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._answer_timer = self.loop.call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop(self._answer_timer)
        super().resume_writing()

    def _watch(self) -> None:
        """Start the time of what is waited for now, unless it is running."""
        waiting_for = {h11.IDLE: _HEAD, h11.SEND_BODY: _BODY}.get(self.conn.their_state)
        if waiting_for == self.waiting_for and self.cycle is self._waiting_cycle:
            return
        self._stop(self._timer)
        self.waiting_for, self._waiting_cycle, self._received = waiting_for, self.cycle, 0
        self.since = self.loop.time()
        if waiting_for is not None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self._allowed, self._expire)

    @property
    def _allowed(self) -> float:
        if self.waiting_for == _HEAD:
            return self.head_seconds
        return self.body_seconds + self._received / self.body_rate

    def _expire(self) -> None:
        if self.waiting_for == _BODY and self.flow.read_paused:  # the application has not come to it yet
            self.since += 1.0
        seconds = self.since + self._allowed - self.loop.time()
        if seconds > 0:
            self._timer = self.loop.call_later(seconds, self._expire)
        else:
            self._close(b"408 Request Timeout")

    def _close(self, status: bytes) -> None:
        """Say why where that is possible at once; a browser that has sent nothing expects no answer."""
        is_asked = self._received or self.waiting_for != _HEAD
        is_answered = self.waiting_for == _BODY and self.cycle.response_started
        if is_answered or not is_asked or self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        self.transport.write(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        self.transport.close()

    @staticmethod
    def _stop(*timers: asyncio.TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()


def make_server(app: Any, settings: WebSettings) -> uvicorn.Server:
    """The server of an application. Forwarded headers are believed from ``settings.proxies`` only.

    uvicorn would believe those of this computer, and of what the environment variable FORWARDED_ALLOW_IPS names.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app, http=Connection, ws="none", log_level="warning", access_log=False, server_header=False,
            timeout_graceful_shutdown=2, proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
        )
    )  # fmt: skip
