"""``--protocol`` on the command line, and ``crosslens protocols``."""

from __future__ import annotations

from pathlib import Path

from .conftest import Call, flags


def test_five_names_phi_tokens_and_variants_everywhere(study: Path, call: Call, no_parser: None) -> None:
    words = ["evaluate", *flags(study), "--protocol", "five"]
    outcome = call(*words, "-o", str(study / "run"))
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("run (protocol five)")
    assert "NCS[cider:split, non-gt, zero]@10" in outcome.out
    assert "captions in lower case, split at spaces" in outcome.out
    output = call("show", str(study / "run")).out
    assert output.startswith(outcome.out.rstrip())
    assert output.removeprefix(outcome.out.rstrip()).startswith("\n\nnote: left out of the protocol five"), (
        "on pages too"
    )
    content = call(*words, "-o", str(study / "run"), "--json").json
    assert content["protocol"]["tokens"]["cider:split"] == "captions in lower case, split at spaces"
    assert content["protocol"]["variants"]["SR"][0] == "cider:split, m=5, non-gt, by-image"
    assert call("show", str(study / "run"), "--json").json["protocol"] == content["protocol"]
    assert "metric (protocol five)" in call("export", str(study / "run"), "--to", "latex").out
    assert ",protocol\n" in call("export", str(study / "run"), "--to", "csv").out
    assert call("run", str(study / "run")).err.endswith(f"same value as in {study / 'run'}\n")


def test_a_contradiction_names_the_flags(study: Path, call: Call) -> None:
    outcome = call("evaluate", *flags(study), "--protocol", "imp", "--ties", "expected")
    assert (outcome.code, outcome.err) == (
        2,
        "error: --ties expected contradicts the protocol imp, which has stable\n"
        "  fix: drop --ties, or drop --protocol\n",
    )
    outcome = call("explain", str(study), "--protocol", "five")
    assert (
        outcome.err
        == "error: the protocol five says nothing about explain\n  fix: drop --protocol, or choose from expl\n"
    )


def test_the_list(call: Call) -> None:
    listed = call("protocols").out
    for name in ("brit", "expl", "five", "imp", "recos"):
        assert f"\n{name} " in f"\n{listed}"
    assert "NCS, nothing similar" in call("protocols", "five").out
    content = call("protocols", "five", "--json").json["protocols"]
    assert content[0]["settings"]["agreement"] == {"phi": ["cider:split", "spice"]}
    assert call("protocols", "fibe").err.startswith("error: unknown protocol 'fibe'")
