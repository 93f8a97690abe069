"""The exit codes that scripts can rely on."""

from __future__ import annotations

UNMET = 7
INTERRUPTED = 130

EXIT_CODES = {
    0: "done",
    1: "a bug in crosslens: the traceback says where",
    2: "wrong use: an unknown command, option or name",
    3: "bad input: a file or an array that cannot be evaluated",
    4: "a missing extra: the message holds the command that installs it",
    5: "a conflict: the output path already holds something else",
    6: "an error in code of yours (a model, a plugin): the message says where",
    UNMET: "a requirement of crosslens check is not met",
    INTERRUPTED: "interrupted",
}
"""Every code a command can end with, and what it means."""
