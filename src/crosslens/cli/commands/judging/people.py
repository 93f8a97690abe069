"""``crosslens judging invite``, ``members``, ``accounts`` and ``audit``: who takes part, and who did what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import crosslens.web as web
from crosslens.cli.commands.judging.projects import ProjectArgument
from crosslens.cli.console import print_json, print_note, print_result, terminal_width
from crosslens.cli.flags import Json, command
from crosslens.core import PAGE_WIDTH, Grid, UsageError, option
from crosslens.web import JudgingFolder

_REVOKE = option(None, "End this invitation; who has joined by it stays.", metavar="ID")
_ADDRESS = option("http://127.0.0.1:8000", "Where people reach the server.", metavar="URL")


@command(
    "crosslens judging invite 1 --folder runs --uses 10",
    "crosslens judging invite 1 --role owner --address https://example.org",
    "crosslens judging invite --role owner --folder runs",
    reads_files=False,
)
def invite(
    project: Annotated[
        str | None,
        typer.Argument(
            help="The number or the name of a project. [default: none: the link makes an owner of the server]",
            metavar="PROJECT",
        ),
    ] = None,
    location: JudgingFolder = JudgingFolder(),  # noqa: B008
    role: str = option("annotator", "What the person becomes.", metavar="annotator|owner"),
    uses: int = option(1, "How many people can use the link.", metavar="N", minimum=1),
    days: float = option(7.0, "How many days it is valid.", metavar="DAYS"),
    address: str = _ADDRESS,
    json: Json = False,
) -> None:
    """Make a link by which people join a project.

    Whoever has the link can join: it is shown once, and only a hash of it is stored.
    """
    database = web.judging_database(location)
    link = f"{address.rstrip('/')}{web.invitation_path(database, project, role=role, uses=uses, days=days)}"
    if json:
        print_json({"link": link})
    else:
        print_result(link)


@command(
    "crosslens judging members 1 --folder runs",
    "crosslens judging members 1 --folder runs --remove Ann",
    "crosslens judging members 1 --folder runs --revoke 3f2a91c07b1d",
    reads_files=False,
)
def members(
    project: ProjectArgument,
    location: JudgingFolder,
    remove: str | None = option(None, "Remove this member; the judgements stay.", metavar="NAME"),
    revoke: str | None = _REVOKE,
    json: Json = False,
) -> None:
    """List or remove members and invitations of a project.

    It holds from the next request on: a member who is removed sees neither the project nor its pictures any more, and
    the items that were open go to others.
    """
    database = web.judging_database(location)
    number = web.project_named(database, project).id
    if remove is not None:
        web.remove_member(database, number, web.account_named(database, remove).id)
    if revoke is not None:
        web.revoke_invitation(database, number, revoke)
    people, invitations = web.members(database, number), web.open_invitations(database, number)
    if json:
        print_json(
            {
                "members": [{"account": account, "name": name, "role": role} for account, name, role in people],
                "invitations": [offer.as_dict() for offer in invitations],
            }
        )  # fmt: skip
        return
    _print_table(("member", "role"), [(name, role) for _, name, role in people], "ll")
    _print_invitations(invitations)


@command(
    "crosslens judging accounts --folder runs",
    "crosslens judging accounts --folder runs --reset Ann",
    "crosslens judging accounts --folder runs --close Ann",
    reads_files=False,
)
def accounts(
    location: JudgingFolder,
    reset: str | None = option(
        None, "End this account's password and sessions; prints a link to a new password.", metavar="NAME"
    ),
    end_sessions: str | None = option(None, "Log this account out everywhere.", metavar="NAME"),
    close: str | None = option(
        None, "Close this account for ever: its judgements stay under a pseudonym, its name is gone.", metavar="NAME"
    ),
    revoke: str | None = _REVOKE,
    address: str = _ADDRESS,
    json: Json = False,
) -> None:
    """List, reset or close accounts.

    Those of all projects, and the invitations for owners of the server. The last owner's account cannot be closed.
    """
    chosen = {"reset": reset, "end-sessions": end_sessions, "close": close}
    given = {name: value for name, value in chosen.items() if value is not None}
    if len(given) > 1:
        raise UsageError(f"{' and '.join(f'--{name}' for name in given)} at once", fix="do one after the other")
    database = web.judging_database(location)
    if revoke is not None:
        web.revoke_invitation(database, None, revoke)
    if not given:
        listed, invitations = web.list_accounts(database), web.open_invitations(database, None)
        if json:
            shown = {"accounts": [line.as_dict() for line in listed]}
            print_json(shown | {"invitations": [offer.as_dict() for offer in invitations]})
            return
        rows = [(line.name, line.kind, f"{line.judgements:,}", f"{line.sessions:,}", ", ".join(line.projects))
                for line in listed]  # fmt: skip
        _print_table(("account", "kind", "judgements", "sessions", "projects"), rows, "llrrl")
        _print_invitations(invitations)
        return
    ((action, name),) = given.items()
    account = web.account_named(database, name)
    if action == "reset":
        result = {
            "account": account.id,
            "link": f"{address.rstrip('/')}/reset/{web.make_reset_link(database, account.id)}",
        }
        text = result["link"]
    elif action == "close":
        result = {"account": account.id, "pseudonym": web.close_account(database, account.id)}
        text = f"closed; its judgements are those of {result['pseudonym']}"
    else:
        result = {"account": account.id, "sessions": web.end_sessions(database, account.id)}
        text = f"sessions ended: {result['sessions']:,}"
    if json:
        print_json(result)
    else:
        print_result(str(text))


@command(
    "crosslens judging audit --folder runs",
    "crosslens judging audit 1 --folder runs --limit 20 --json",
    reads_files=False,
)
def audit(
    project: Annotated[
        str | None, typer.Argument(help="The number or the name of a project. [default: all]", metavar="PROJECT")
    ] = None,
    location: JudgingFolder = JudgingFolder(),  # noqa: B008
    limit: int = option(100, "How many entries, the newest first.", metavar="N", minimum=1, maximum=1_000_000),
    json: Json = False,
) -> None:
    """Show who did what, the newest first.

    Accounts, invitations, members, settings, imports, decisions and exports. Closed accounts appear under their
    pseudonyms, commands under the name of the computer's user.
    """
    database = web.judging_database(location)
    number = None if project is None else web.project_named(database, project).id
    entries = web.audit_log(database, number, limit=limit)
    if json:
        print_json([entry.as_dict() for entry in entries])
        return
    rows = [
        (f"{entry.time:%Y-%m-%d %H:%M}", entry.who, entry.action,
         "; ".join(filter(None, (entry.about, entry.project_name, entry.detail))))
        for entry in entries
    ]  # fmt: skip
    _print_table(("time (UTC)", "who", "what", "about"), rows, "llll")
    if len(entries) == limit:
        print_note(f"note: there may be more than {limit:,} entries: pass --limit")


def _print_invitations(invitations: Sequence[web.OpenInvitation]) -> None:
    if invitations:
        print_result()
        rows = [(offer.id, offer.role, f"{offer.used} of {offer.uses}", f"{offer.expires:%Y-%m-%d %H:%M}")
                for offer in invitations]  # fmt: skip
        _print_table(("invitation", "role", "used", "until (UTC)"), rows, "llrl")


def _print_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], sides: str) -> None:
    print_result(Grid(heads, tuple(rows), sides).text(terminal_width() or PAGE_WIDTH) if rows else "none")
