"""Options classes: values are checked, picked out of keyword arguments, and unknown names refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from crosslens.core import Options, UnknownNameError, UsageError, declarations, option, refuse_unknown
from crosslens.encode import EncodeOptions


@dataclass(frozen=True)
class SearchOptions(Options):
    """Options of a made-up search."""

    depth: int = option(10, "How many items of each list are kept.", metavar="N", minimum=1)
    share: float = option(0.5, "A share.", above=0, below=1)
    ties: str = option("stable", "How ties are broken.", choices=("stable", "expected"))
    limit: int | None = option(None, "At most so many.", minimum=1)
    plain: int = 3


def test_pick_takes_its_own() -> None:
    arguments = {"depth": 5, "model": "m", "ties": "expected"}
    assert SearchOptions.pick(arguments) == SearchOptions(depth=5, ties="expected")
    assert SearchOptions.pick({}) == SearchOptions()


def test_of_refuses_what_it_does_not_know() -> None:
    assert SearchOptions.of({"depth": 5}).depth == 5
    with pytest.raises(UnknownNameError, match="unknown option 'dept'\n  fix: did you mean depth") as raised:
        SearchOptions.of({"dept": 5})
    assert raised.value.subject == "dept"
    with pytest.raises(UnknownNameError, match="unknown option 'plain'"):  # a field that is not an option
        SearchOptions.of({"plain": 5})


def test_the_arguments_of_a_call_are_not_changed() -> None:
    arguments = {"depth": 5}
    SearchOptions.of(arguments)
    assert arguments == {"depth": 5}


def test_nothing_is_left_over() -> None:
    refuse_unknown({}, ("depth",))
    with pytest.raises(UnknownNameError, match="unknown option 'b'"):
        refuse_unknown({"b": 1}, ("depth",))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("depth", 0, "depth is 0\n  fix: depth must be at least 1"),
        ("share", 0, "share is 0\n  fix: share must be above 0"),
        ("share", 1.0, "share is 1.0\n  fix: share must be below 1"),
        ("limit", -2, "limit is -2\n  fix: limit must be at least 1"),
    ],
)
def test_ranges(name: str, value: float, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        SearchOptions.of({name: value})
    assert str(raised.value) == message
    assert raised.value.option == name


def test_choices() -> None:
    with pytest.raises(UnknownNameError, match="unknown ties 'stabel'\n  fix: did you mean stable") as raised:
        SearchOptions(ties="stabel")
    assert raised.value.option == "ties"


def test_none_is_not_checked() -> None:
    assert SearchOptions(limit=None).limit is None


def test_declarations_are_in_order_and_complete() -> None:
    declared = declarations(SearchOptions)
    assert list(declared) == ["depth", "share", "ties", "limit"]
    assert (declared["depth"].help, declared["depth"].metavar) == ("How many items of each list are kept.", "N")
    assert declared["ties"].choices == ("stable", "expected")
    assert not declarations(Options)


def test_encode_options() -> None:
    options = EncodeOptions.of({"device": "cpu", "batch_size": 8})
    assert (options.device, options.batch_size, options.precision) == ("cpu", 8, "fp32")
    assert callable(options.notify)
    declared = declarations(EncodeOptions)
    assert declared["notify"].hidden
    assert declared["cache"].switch_off.startswith("--no-cache ")
    assert all(declaration.help for declaration in declared.values())
    with pytest.raises(UnknownNameError, match="unknown precision 'fp8'"):
        EncodeOptions(precision="fp8")
    with pytest.raises(UsageError, match="batch_size must be at least 1"):
        EncodeOptions(batch_size=0)
