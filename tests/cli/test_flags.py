"""Options classes as flags of a command, and options in messages written as flags."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from crosslens.cli import app
from crosslens.cli.app import _command_of
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import Flags, Json, command, expand_options, flag_spelling, positional
from crosslens.core import Options, errors, option
from crosslens.data import REPAIR_IMAGE
from crosslens.encode import EncodeOptions

from .conftest import Call


@dataclass(frozen=True)
class SearchOptions(Options):
    """How lists are made."""

    depth: int = option(10, "Items that are kept.", metavar="N", minimum=1)
    model: str | None = option(None, "The model.", metavar="NAME")
    mode: str = option("fast", "fast or exact.", metavar="MODE", choices=("fast", "exact"))
    store: Path | str | bool | None = option(
        None, "Where vectors are kept.", metavar="FOLDER", switch_off="--no-store Keep nothing."
    )
    names: tuple[str, ...] = option((), "Names.", metavar="NAME", flags=("-N", "--name"))
    strict: bool = option(False, "Stop at the first mistake.")
    callback: Any = option(print, "Called with every note.", hidden=True)


def run(function: Any, *words: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Call a command with these words: exit code, output, and what the command received."""
    received: list[dict[str, Any]] = []
    application = typer.Typer(rich_markup_mode=None)
    application.command()(function(received))
    outcome = CliRunner().invoke(application, list(words))
    return outcome.exit_code, outcome.output, received


def whole(received: list[dict[str, Any]]) -> Any:
    @command("crosslens search --depth 5")
    def search(
        options: SearchOptions, limit: int | None = option(None, "At most.", metavar="N"), json: Json = False
    ) -> None:
        """Search."""
        received.append({"options": options, "limit": limit, "json": json})

    return search


def part(received: list[dict[str, Any]]) -> Any:
    @expand_options
    def search(
        options: Annotated[
            SearchOptions, Flags(without=("store", "strict"), required=("model",), help={"depth": "Another text."})
        ],
    ) -> None:
        received.append({"options": options})

    return search


def test_without_flags_the_defaults_hold() -> None:
    code, _, received = run(whole)
    assert code == 0
    assert received == [{"options": SearchOptions(), "limit": None, "json": False}]


def test_every_field_is_a_flag() -> None:
    words = ["--depth", "5", "--model", "clip", "--mode", "exact", "--store", "here", "-N", "a", "--name", "b"]
    code, _, received = run(whole, *words, "--strict", "--limit", "3", "--json")
    assert code == 0
    expected = SearchOptions(depth=5, model="clip", mode="exact", store="here", names=("a", "b"), strict=True)
    assert received == [{"options": expected, "limit": 3, "json": True}]


def test_an_option_is_switched_off_by_its_own_flag() -> None:
    assert run(whole, "--no-store")[2][0]["options"].store is False


def test_help_shows_what_is_declared() -> None:
    _, text, _ = run(whole, "--help")
    for words in (
        "--depth N",
        "Items that are kept.",
        "[default: 10; x>=1]",
        "--no-store",
        "Keep nothing.",
        "-N, --name",
    ):
        assert words in text
    assert "callback" not in text


@pytest.mark.parametrize("value", ["0", "many"])
def test_values_are_checked(value: str) -> None:
    code, text, _ = run(whole, "--depth", value)
    assert code == 2
    assert "'--depth'" in text


def test_choices_are_checked_with_a_suggestion() -> None:
    application = typer.Typer()
    application.command()(whole([]))
    outcome = CliRunner().invoke(application, ["--mode", "fats"])
    assert isinstance(outcome.exception, errors.UnknownNameError)
    assert "did you mean fast" in str(outcome.exception)


def test_a_command_takes_some_of_the_fields() -> None:
    _, text, _ = run(part, "--help")
    assert "--store" not in text
    assert "--strict" not in text
    assert "Another text." in text
    code, text, _ = run(part)
    assert code == 2
    assert "Missing option '--model'" in text
    assert run(part, "--model", "clip")[2] == [{"options": SearchOptions(model="clip")}]


def test_only() -> None:
    def only(received: list[dict[str, Any]]) -> Any:
        @expand_options
        def search(options: Annotated[SearchOptions, Flags(only=("depth",))]) -> None:
            received.append({"options": options})

        return search

    assert run(only, "--depth", "3")[2] == [{"options": SearchOptions(depth=3)}]
    assert run(only, "--model", "clip")[0] == 2


def test_a_flag_of_the_command_may_be_called_like_a_field_that_it_leaves_out() -> None:
    def command(received: list[dict[str, Any]]) -> Any:
        @expand_options
        def search(
            options: Annotated[SearchOptions, Flags(without=("model",))], model: str = option("mine", "Another.")
        ) -> None:
            received.append({"options": options, "model": model})

        return search

    assert run(command)[2] == [{"options": SearchOptions(), "model": "mine"}]


def test_a_misspelled_field_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="no option depht"):

        @expand_options
        def search(options: Annotated[SearchOptions, Flags(without=("depht",))]) -> None: ...


def test_the_signature_is_spelled_out() -> None:
    """The reference pages read types and defaults from it."""
    search = whole([])
    parameters = inspect.signature(search).parameters
    assert list(parameters)[:3] == ["depth", "model", "mode"]
    assert search.__doc__ == "Search."
    assert search.epilog == "\b\nExamples:\n  crosslens search --depth 5"


def test_the_flags_that_commands_share() -> None:
    encode = set(inspect.signature(expand_options(_both)).parameters)
    assert {"precision", "device", "batch_size", "cache", "no_cache", "offline", "image_folder", "skip_bad"} <= encode
    assert {"dataset", "captions", "instances", "images", "split", "data"} <= encode


def _both(encode: EncodeOptions, source: DatasetOptions) -> None: ...


# Flags that are given twice


def test_a_second_value_of_a_single_option_is_refused() -> None:
    application = typer.Typer()
    application.command()(whole([]))
    for words in (["--depth", "5", "--depth", "6"], ["--limit", "5", "--limit", "6"]):
        outcome = CliRunner().invoke(application, words)
        assert isinstance(outcome.exception, errors.UsageError)
        assert str(outcome.exception).startswith(f"{words[0]} takes one value, not 2: 5, 6")


def test_a_second_text_of_names_is_added() -> None:
    def several(received: list[dict[str, Any]]) -> Any:
        @expand_options
        def search(metrics: str | None = option(None, "Names.", metavar="NAMES", joins=" ")) -> None:
            received.append({"metrics": metrics})

        return search

    assert run(several, "--metrics", "Hit@1 MRR", "--metrics", "MedR")[2] == [{"metrics": "Hit@1 MRR MedR"}]
    assert run(several)[2] == [{"metrics": None}]


def _commands(parent: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, child in parent.commands.items():
        if hasattr(child, "commands"):
            yield from _commands(child, (*path, name))
        else:
            yield (*path, name), child


def test_no_command_keeps_the_last_of_several_values_in_silence() -> None:
    """The parser overwrites the value of an option that does not take several: none may be of that kind."""
    for words, parsed in _commands(_command_of(())):
        for parameter in parsed.params:
            if parameter.param_type_name == "option" and not parameter.is_flag:
                # typer cannot repeat an option of two values, such as --band: of those the last counts.
                assert parameter.multiple or parameter.nargs == 2, (words, parameter.name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "run", "--by", "a", "--by", "b"), "--by takes one value, not 2: a, b"),
        (
            ("explain", "run", "--direction", "t2i", "--direction", "i2t"),
            "--direction takes one value, not 2: t2i, i2t",
        ),
        (("curve", "run", "--threads", "1", "--threads", "2"), "--threads takes one value, not 2: 1, 2"),
    ],
)
def test_options_of_commands_that_are_given_twice(words: tuple[str, ...], message: str, call: Call) -> None:
    outcome = call(*words)
    assert (outcome.code, outcome.err) == (2, f"error: {message}\n  fix: keep one of them\n")


# Options in messages


@pytest.mark.parametrize(
    ("words", "name", "value", "flags"),
    [
        (("evaluate",), "overwrite", True, "--overwrite"),
        (("evaluate",), "batch_size", 16, "--batch-size 16"),
        (("evaluate",), "score", "dot", "--score dot"),
        (("evaluate",), "qrels", None, "--qrels"),
        (("evaluate",), "relevance", None, "--qrels"),
        (("evaluate",), "cache", False, "--no-cache"),
        (("evaluate",), "split", "test", "--split test"),
        (("evaluate",), "skip_empty", True, "-D skip_empty=true"),
        (("data", "describe"), "text_column", None, "-D text_column="),
        (("evaluate",), "images", None, "--image-embeddings"),
        (("data", "convert"), "images", None, "--images-output"),
        (("hard-negatives",), "crop", False, "--no-crop"),
        (("show",), "no_such_option", 3, "no_such_option=3"),
        ((), "overwrite", True, "overwrite=True"),
    ],
)
def test_options_are_spelled_as_flags(words: tuple[str, ...], name: str, value: Any, flags: str) -> None:
    error = errors.UsageError("x", fix=f"pass {errors.argument(name, value)}")
    assert error.render(flag_spelling(_command_of(words))) == f"x\n  fix: pass {flags}"


def test_errors_suggest_flags(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise errors.UsageError("x", fix=f"pass {errors.argument('overwrite', True)}")

    monkeypatch.setattr("crosslens.values.run.Run.load", fail)
    assert call("plot", "somewhere", "--write", "x.html").err == "error: x\n  fix: pass --overwrite\n"


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("encode",), "repair or remove the file, or pass --skip-bad to leave such images out"),
        (("hard-negatives",), "repair or remove the file, or pass --skip-missing to leave such images out"),
        (("robustness",), "repair or remove the file"),
        (("analyze", "labels"), "repair or remove the file"),
    ],
)
def test_an_unreadable_image_is_answered_with_flags_that_exist(words: tuple[str, ...], fix: str) -> None:
    error = errors.InputError("x", fix=REPAIR_IMAGE)
    assert error.render(flag_spelling(_command_of(words))) == f"x\n  fix: {fix}"


def _strings(file: Path) -> Iterator[str]:
    """The texts of a module that may be printed: no docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def test_a_module_of_commands_names_only_flags_of_its_commands() -> None:
    """A flag that is written out in a command's module (help, note or error) is one of that module's commands."""
    flags: dict[str, set[str]] = {}
    for _, parsed in _commands(_command_of(())):
        module = flags.setdefault(parsed.callback.__module__.rsplit(".", 1)[-1], {"--help"})
        module.update(flag for parameter in parsed.params for flag in (*parameter.opts, *parameter.secondary_opts))
    for file in sorted((Path(app.__file__).parent / "commands").glob("*.py")):
        for text in _strings(file):
            # A text that names another command writes that command's flags.
            if file.stem in flags and not re.search(r"crosslens |evaluate --|^ +-|^-", text):
                assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= flags[file.stem], (file.name, text)


def test_errors_outside_the_command_line_do_not_spell_flags() -> None:
    """Python reads them, too: there an option is written as ``argument("name")``."""
    source = Path(app.__file__).parents[1]
    for file in source.rglob("*.py"):
        if "cli" in file.relative_to(source).parts:
            continue
        code = file.read_text(encoding="utf-8")
        # Parsing all modules takes seconds.
        for node in ast.walk(ast.parse(code if re.search(r"--[a-z]", code) else "")):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
                for text in (part.value for part in ast.walk(node) if isinstance(part, ast.Constant)):
                    if isinstance(text, str) and not re.search(r"crosslens |pip install", text):
                        assert not re.search(r"(?<![\w-])--[a-z]", text), (file.name, text)


@pytest.mark.parametrize("again", [["--band", "0.2", "0.3"], ["--band=0.2", "0.3"]])
def test_a_flag_of_two_values_given_twice(call: Call, tmp_path: Path, again: list[str]) -> None:
    outcome = call("build", "imp", "--band", "0.1", "0.6", *again, "-o", tmp_path / "bench")
    assert outcome.code == 2
    assert outcome.err == "error: --band is given 2 times\n  fix: pass --band LOW HIGH once\n"


def test_numbers_of_a_command_itself_are_checked_as_those_of_options_classes() -> None:
    code, _, received = run(whole, "--limit", str(2**63))
    assert (code, received) == (1, [])
    assert run(whole, "--limit", str(2**63 - 1))[0] == 0


def test_words_without_a_flag_and_long_examples() -> None:
    def search_words(received: list[dict[str, Any]]) -> Any:
        @command(
            "crosslens search a.csv b.csv \\",
            "    --limit 5",
            f"crosslens search {'a' * 30}.csv --limit {'5' * 8} --json -D key={'b' * 30}",
        )
        def search(
            options: SearchOptions,
            files: list[Path] = positional(..., "The tables.", metavar="TABLE"),
            limit: int | None = option(None, "At most."),
        ) -> None:
            """Search."""
            received.append({"files": files, "limit": limit, "depth": options.depth})

        return search

    assert run(search_words, "a.csv", "b.csv", "--depth", "3") == (
        0, "", [{"files": [Path("a.csv"), Path("b.csv")], "limit": None, "depth": 3}],
    )  # fmt: skip
    code, output, received = run(search_words)
    assert code == 2
    assert "TABLE" in output
    assert not received
    examples = vars(search_words([]))["epilog"].splitlines()[2:]
    assert examples == [
        "  crosslens search a.csv b.csv --limit 5",
        f"  crosslens search {'a' * 30}.csv --limit {'5' * 8} --json \\",
        f"      -D key={'b' * 30}",
    ]
