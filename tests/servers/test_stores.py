"""Vectors read from stores and runs written to them: S3 (moto), Google's (an emulator), the hub's (a stand-in)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from crosslens.values import Run
from tests.commands import Call
from tests.servers.conftest import Store, evaluate, files_of, reset

pytestmark = pytest.mark.slow


def content_of(run: Path) -> dict[str, Any]:
    """The files of a run without what says where its inputs were: the recipe, and its hash in the header."""
    files = files_of(run)
    del files["recipe.toml"]
    stored = json.loads(files.pop("run.json"))
    del stored["provenance"]["command"], stored["checksum"], stored["files"]["recipe.toml"]
    return {**files, "run.json": stored}


def test_vectors_in_a_store_are_those_of_the_folder(store: Store, call: Call) -> None:
    here, there = evaluate(call, "emb", "--json"), evaluate(call, store.address, "--json")
    assert there.code == 0, there.err
    assert there.json["metrics"] == here.json["metrics"]


def test_a_store_says_what_it_has_instead(store: Store, call: Call) -> None:
    above, _, name = store.address.rpartition("/")
    missing = evaluate(call, f"{above}/lion")
    assert missing.code == 3
    assert f"{above}/lion: nothing is there" in missing.err
    assert f"{above} has {name}" in missing.err
    deeper = evaluate(call, f"{store.address}/img/img_0.npy")
    assert f"{store.address} has img_emb, metadata, text_emb" in deeper.err


def test_a_connection_that_breaks_while_reading(store: Store, call: Call, tmp_path: Path) -> None:
    assert evaluate(call, "emb", "-o", "here/run").code == 0
    store.proxy.cut(received=120_000)  # of 400,000
    broken = evaluate(call, store.address, "-o", "there/run")
    assert store.proxy.cuts
    assert broken.code == 3, broken.err
    assert re.search("cannot be read|within 20 seconds", broken.err), "some clients try again and again"
    assert "run the same command again" in broken.err
    assert not (tmp_path / "there/run").exists()
    store.proxy.heal()
    store.forget()
    copies = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache/remote").rglob("*.npy")}
    again = evaluate(call, store.address, "-o", "there/run")
    assert again.code == 0, again.err
    assert content_of(tmp_path / "there/run") == content_of(tmp_path / "here/run")
    assert copies.items() <= {file: file.stat().st_mtime_ns for file in copies}.items(), "what has arrived is kept"


@pytest.mark.parametrize("store", ["s3", "google"], indirect=True)
def test_a_run_is_written_to_a_store_and_read_from_there(store: Store, call: Call, tmp_path: Path) -> None:
    assert evaluate(call, "emb", "-o", "run").code == 0
    output = f"{store.outputs}/run"
    written = evaluate(call, store.address, "-o", output)
    assert written.code == 0, written.err
    assert f"written to {output}" in written.err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(("s3", "gs"))]
    assert f"up to date: {output}" in evaluate(call, store.address, "-o", output).err
    other_seed = evaluate(call, store.address, "-o", output, "--seed", "5")
    assert other_seed.code == 5
    assert f"{output}: already contains a different run" in other_seed.err
    (tmp_path / "cache").rename(tmp_path / "cache of another machine")
    store.forget()
    assert f"up to date: {output}" in evaluate(call, store.address, "-o", output).err
    from_store, here = call("show", output, "--json"), call("show", "run", "--json")
    assert from_store.code == 0, from_store.err
    assert from_store.json["metrics"] == here.json["metrics"]
    assert content_of(Run.load(output).home or Path()) == content_of(tmp_path / "run")
    compared = call("compare", "run", output, "--json")
    assert compared.code == 0, compared.err
    replaced = evaluate(call, store.address, "-o", output, "--seed", "5", "--overwrite", "--direction", "i2t")
    assert replaced.code == 0, replaced.err
    store.forget()
    assert list(Run.load(output).rankings) == ["i2t"], "nothing of the old run is left"


@pytest.mark.parametrize("store", ["s3", "google"], indirect=True)
def test_a_connection_that_breaks_while_writing(store: Store, call: Call, tmp_path: Path) -> None:
    assert evaluate(call, "emb", "-o", "run").code == 0
    output = f"{store.outputs}/run"
    store.proxy.cut(sent=9_000)
    broken = evaluate(call, "emb", "-o", output)
    assert store.proxy.cuts
    assert broken.code == 3, broken.err
    assert re.search(f"{output}: (cannot be written|no answer within 20 seconds)", broken.err)
    store.proxy.heal()
    store.forget()
    half = call("show", output).err
    assert re.search(f"{output}: (nothing is there|no run.json here)", half), "half of a run is not taken for one"
    again = evaluate(call, "emb", "-o", output)
    assert again.code == 0, again.err
    store.forget()
    assert content_of(Run.load(output).home or Path()) == content_of(tmp_path / "run")


def test_what_cannot_be_written(hub: Store, call: Call) -> None:
    refused = evaluate(call, "emb", "-o", f"{hub.outputs}/run")
    assert refused.code == 2
    assert "a run cannot be written to hf://" in refused.err
    report = call("encode", "--model", "tiny", "--dataset", "emb", "-o", "s3://bucket/vectors")
    assert report.code != 0


def test_files_that_are_not_a_run_stay(s3: Store, call: Call) -> None:
    refused = evaluate(call, "emb", "-o", s3.address)
    assert refused.code == 5
    assert "s3://bucket/laion is not empty and is not a run" in refused.err


def test_s3_without_and_with_wrong_credentials(s3: Store, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.delenv("AWS_ACCESS_KEY_ID")
        without.delenv("AWS_SECRET_ACCESS_KEY")
        refused = evaluate(call, s3.address)
        assert refused.code == 3
        assert "s3://bucket/laion: access is refused: Unable to locate credentials" in refused.err
        assert "AWS_ACCESS_KEY_ID" in refused.err
        without.setenv("FSSPEC_S3_ANON", "true")
        assert "access is refused: Forbidden" in evaluate(call, s3.address).err  # it is not public
    s3.forget()
    reset(s3.server, "reset-auth", b"0")  # from now on credentials are looked at
    refused = evaluate(call, s3.address)
    reset(s3.server, "reset-auth", b"inf")
    assert refused.code == 3
    assert "s3://bucket/laion: access is refused: " in refused.err
    assert "AWS_PROFILE" in refused.err


def test_a_server_that_cannot_be_reached(s3: Store, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3.forget()
    refused = evaluate(call, s3.address)
    assert refused.code == 3
    assert "cannot be read: Could not connect" in refused.err
    assert "check the address and the network" in refused.err


def test_a_hub_without_rights(hub: Store, call: Call) -> None:
    hub.server.private = True
    refused = evaluate(call, hub.address)
    assert refused.code == 3
    assert "HF_TOKEN" in refused.err
