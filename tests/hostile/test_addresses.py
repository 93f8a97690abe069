"""Addresses: which are opened at all, which because a file names them, and none offline; each request is counted."""

from __future__ import annotations

import http.server
import io
import json
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import crosslens as cl
from crosslens.audits import AuditFolder, AuditRequest, DatasetSource, run_audit
from crosslens.build.generators.http import _OPTIONS
from crosslens.cli.app import _root_command
from crosslens.cli.commands.build import absolute
from crosslens.core import InputError, UsageError, host_of
from crosslens.core.addresses import ENDPOINT_NAMES
from crosslens.data import load_dataset, read_vectors
from crosslens.encode.chat import ENDPOINT_OPTIONS
from crosslens.pipeline import AuditOptions, EvaluateOptions, InputOptions, Recipe, read_panel, run_recipe
from crosslens.storage import command_line, local_copy, named_by, offline, remote, require_address, trust, trusting
from tests.hostile.conftest import Call, Refuses

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


class Site(http.server.BaseHTTPRequestHandler):
    """Vectors by name; what is below /to/ADDRESS redirects there, and below /uri/ADDRESS by another header. Everything
    that is asked is kept."""

    asked: ClassVar[list[str]]

    def answer(self) -> None:
        self.asked.append(self.path)
        if self.path.startswith(("/to/", "/uri/")):
            self.send_response(302)
            name = "URI" if self.path.startswith("/uri/") else "Location"
            self.send_header(name, self.path.partition("/")[2].partition("/")[2])
            self.end_headers()
            return
        content = io.BytesIO()
        np.save(content, np.random.default_rng(len(self.path)).random((6 if "cap" in self.path else 3, 4), np.float32))
        self.send_response(200)
        self.send_header("Content-Length", str(content.tell()))
        self.send_header("ETag", '"always the same"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content.getvalue())

    do_HEAD = do_GET = do_POST = answer

    def log_message(self, *words: object) -> None:
        pass


def serve() -> http.server.ThreadingHTTPServer:
    kind = type("Own", (Site,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


class Served:
    """A server on this machine: its host, the addresses below it, and what it was asked."""

    def __init__(self) -> None:
        self.server = serve()
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.asked: list[str] = self.server.RequestHandlerClass.asked  # type: ignore[attr-defined]

    def at(self, path: str) -> str:
        return f"http://{self.host}/{path}"


@pytest.fixture
def site() -> Iterator[Served]:
    served = Served()
    yield served
    served.server.shutdown()
    served.server.server_close()


@pytest.fixture
def second_site() -> Iterator[Served]:
    served = Served()
    yield served
    served.server.shutdown()
    served.server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Served) -> Path:
    """A folder that somebody sent: a dataset, scores, and a run whose recipe names addresses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSLENS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_SECONDS", "10")
    cl.Dataset.of({f"p{n}": [f"a caption {n}", f"another {n}"] for n in range(3)}).save(tmp_path / "data")
    np.save("scores.npy", np.random.default_rng(0).random((3, 6), np.float32))
    inputs = InputOptions(image_embeddings=site.at("img.npy"), caption_embeddings=site.at("cap.npy"))
    run_recipe(Recipe("./data", inputs=inputs, options=EvaluateOptions(metrics=("MRR",), resamples=0)), "theirs")
    site.asked.clear()
    return tmp_path


def write_levels(folder: Path) -> None:
    """Tables of captions by difficulty, and of pairs that do not match."""
    captions = [f"p{n}#{k}" for n in range(3) for k in range(2)]
    (folder / "levels.csv").write_text("caption,difficulty\n" + "".join(f"{name},easy\n" for name in captions))
    (folder / "rejected.csv").write_text("image,caption\np0,p1#0\np1,p2#0\n")


DATASET = '[dataset]\nsource = "data"\n\n'
SCORES = '[inputs]\nscores = "scores.npy"\n'
FEW = '\n[options]\nresamples = 0\nmetrics = ["MRR"]\n'


def vectors_recipe(site: Served, images: str = "img.npy") -> str:
    files = f'image_embeddings = "{site.at(images)}"\ncaption_embeddings = "{site.at("cap.npy")}"\n'
    return f"{DATASET}[inputs]\n{files}{FEW}"


def ways(site: Served) -> dict[str, str]:
    """Recipes that name an address, in each place that can hold one."""
    metric = '[options]\nresamples = 0\nmetrics = ["{}"]\n'
    return {
        "embeddings": vectors_recipe(site),
        "similarity": DATASET + SCORES + metric.format(f"NCS[embed:vectors:{site.at('cap')}]@2"),
        "rerank": DATASET + SCORES + f'[rerank]\nmodel = "vqa:{site.at("v1?model=m")}"\n[model]\nimage_folder = "."\n',
        "run of a run": DATASET + SCORES + 'scores_from = ["x=theirs"]\n' + metric.format("DCGcm[scores_from=x]@2"),
    }


@pytest.mark.parametrize("way", ["embeddings", "similarity", "rerank", "run of a run"])
def test_an_address_in_a_recipe_is_not_opened(way: str, folder: Path, site: Served, call: Call) -> None:
    (folder / "recipe.toml").write_text(ways(site)[way])
    outcome = call("run", "recipe.toml", "-o", "out")
    assert site.asked == []
    assert outcome.code == 2, outcome.err
    assert f"recipe.toml names http://{site.host}/" in outcome.err
    assert f"--allow-host {site.host}" in outcome.err
    assert not (folder / "out").exists()
    assert call("run", "recipe.toml", "--allow-host", "example.org").code == 2
    assert site.asked == []


@pytest.mark.parametrize("way", ["embeddings", "run of a run"])
def test_it_is_opened_once_its_host_is_allowed(way: str, folder: Path, site: Served, call: Call) -> None:
    (folder / "recipe.toml").write_text(ways(site)[way])
    outcome = call("run", "recipe.toml", "--allow-host", site.host)
    assert outcome.code == 0, outcome.err
    assert site.asked


def test_commands_that_read_a_stored_run(folder: Path, site: Served, call: Call) -> None:
    metrics = ("--metrics", "DCGcm[scores_from=x]@2", "--scores-from", "x=theirs", "--resamples", "0")
    commands = [
        ("evaluate", "--dataset", "./data", "--scores", "scores.npy", *metrics),
        ("run", "theirs"),
        ("audit", "--run", "theirs", "-o", "out"),
        ("analyze", "difficulty", "--runs", "theirs", "--calibration", "self", "-o", "l.csv"),
        ("analyze", "scorers", "theirs", "--phi", "cider", "--dataset", "./data"),
        ("analyze", "categories", "theirs", "--difficulty", "levels.csv", "--rejected", "rejected.csv"),
    ]
    write_levels(folder)
    for words in commands:
        outcome = call(*words)
        assert (outcome.code, site.asked) == (2, []), (words, outcome.err)
        assert "theirs/recipe.toml names http://" in outcome.err, words
        assert f"--allow-host {site.host}" in outcome.err, words
    assert call(*commands[0], "--allow-host", f"http://{site.host}/").code == 0
    assert site.asked


def test_what_the_command_names_is_opened_also_by_its_own_files(folder: Path, site: Served, call: Call) -> None:
    words = (
        "--dataset",
        "./data",
        "--image-embeddings",
        site.at("img.npy"),
        f"--caption-embeddings={site.at('cap.npy')}",
    )
    assert call("evaluate", *words, "--metrics", "MRR", "--resamples", "0", "-o", "run").code == 0
    again = call("run", "run/recipe.toml")
    assert again.code == 2
    assert "run/recipe.toml names http://" in again.err, "a file does not show who wrote it"


def test_in_python(folder: Path, site: Served) -> None:
    recipe = Recipe.read("theirs/recipe.toml")
    with pytest.raises(
        UsageError, match=rf"recipe\.toml names http://{site.host}/img\.npy[^$]*allow_hosts=\('{site.host}'"
    ):
        run_recipe(recipe)
    with pytest.raises(UsageError, match="an address in a file is not opened unasked"):
        read_panel(["theirs"])
    assert site.asked == []
    assert run_recipe(recipe, allow_hosts=(site.host,)).values
    assert read_panel(["theirs"], allow_hosts=[site.host])[0].scores is not None
    inputs = InputOptions(image_embeddings=site.at("img.npy"), caption_embeddings=site.at("cap.npy"))
    assert run_recipe(Recipe("./data", inputs=inputs), "mine").values, "a recipe made in Python is the caller's own"
    with pytest.raises(UsageError, match=r"mine/recipe\.toml names"):
        run_recipe(Recipe.read("mine/recipe.toml"))


def test_an_address_forgotten_by_its_reader_is_not_opened_by_a_command(site: Served, folder: Path) -> None:
    """Even where nobody says that a name comes from a file, in whichever thread."""
    problems: list[str] = []

    def forgetful() -> None:
        with pytest.raises(UsageError) as caught:
            local_copy(site.at("img.npy"))
        problems.append(str(caught.value))

    with command_line(["evaluate", "--image-embeddings", site.at("image.npy")]):
        forgetful()
        thread = threading.Thread(target=forgetful)
        thread.start()
        thread.join()
    assert len(problems) == 2
    assert site.asked == []


@pytest.mark.parametrize(
    ("word", "address", "is_typed"),
    [
        ("s3://b/x", "s3://b/x", True),
        ("--images=s3://b//x/", "s3://b/x", True),
        ("NCS[embed:vectors:https://h/x.npy]@10", "https://h/x.npy", True),
        ("https://h", "https://h", True),
        ("https://h/x", "https://h", True),
        ("https://h.evil.org/x", "https://h", False),
        ("https://h:8000/x", "https://h", False),
        ("https://h@evil.org/x", "https://h", False),
        ("https://h/x", "https://h/y", False),
        ("s3://b", "gs://b", False),
    ],
)
def test_what_stands_on_the_command_line(word: str, address: str, is_typed: bool) -> None:
    with command_line(["evaluate", word]):
        if is_typed:
            assert require_address(address) is None
        else:
            with pytest.raises(UsageError, match="not opened unasked"):
                require_address(address)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://user:pass@Example.org:8080/x?y", "example.org:8080"),
        ("HTTP://example.org?x=/", "example.org"),
        ("s3://Bucket/folder", "s3://Bucket"),
        ("gcs://bucket", "gs://bucket"),
        ("hf://datasets/owner/name@main/x", "hf://owner"),
        ("hf://owner/name", "hf://owner"),
    ],
)
def test_hosts_of_addresses(address: str, host: str) -> None:
    assert host_of(address) == host
    with named_by("theirs.toml"), trusting(allow_hosts=[host]):
        assert require_address(address)
    with named_by("theirs.toml"), trusting(allow_hosts=["other", "s3://other"]), pytest.raises(UsageError):
        require_address(address)


@pytest.mark.parametrize("way", ["to", "uri"])
def test_a_redirect_to_a_host_that_nobody_allowed(
    way: str, folder: Path, site: Served, second_site: Served, call: Call
) -> None:
    (folder / "recipe.toml").write_text(vectors_recipe(site, f"{way}/{second_site.at('img.npy')}"))
    outcome = call("run", "recipe.toml", "--allow-host", site.host)
    assert (outcome.code, second_site.asked) == (2, [])
    assert f"{site.host} redirects to {second_site.host}" in outcome.err
    assert f"--allow-host {second_site.host}" in outcome.err
    assert call("run", "recipe.toml", "--allow-host", site.host, "--allow-host", second_site.host).code == 0
    assert second_site.asked
    second_site.asked.clear()
    read_vectors(site.at(f"{way}/{second_site.at('img2.npy')}"), "image")
    assert second_site.asked, "who names an address trusts it to lead elsewhere"


REFUSED = {
    "reference://x.npy::file://{0}/ref.json": "reference:// is not supported",
    "http://example.org/x.npy::reference://": "an address with :: is not supported",
    "s3://bucket/x::file://{0}/x.npy": "an address with :: is not supported",
    "file://{0}/x.npy": "file:// is not supported",
    "FILE://{0}/x.npy": "file:// is not supported",
    "local://{0}/x.npy": "local:// is not supported",
    "simplecache::file://{0}/x.npy": "",
    "zip://x.npy::file://{0}/x.zip": "zip:// is not supported",
    "memory://x.npy": "memory:// is not supported",
    "github://a:b@main/x.npy": "github:// is not supported",
    "ssh://host/x.npy": "ssh:// is not supported",
    "data://x,y": "data:// is not supported",
    "http://host\\@elsewhere/x.npy": "backslashes in an address",
    "https://host/x?sig=a b": "spaces, quotes or backslashes in an address",
    "https://***@host/x": "its parts *** are not here",
    "https://host/x?***": "its parts *** are not here",
    "https://host/x?a=***": "its parts *** are not here",
}


@pytest.mark.parametrize("address", REFUSED)
def test_only_five_schemes_and_no_chains(
    address: str, tmp_path: Path, refuses: Refuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "ref.json").write_text(
        json.dumps({"version": 1, "templates": {}, "gen": [], "refs": {"x.npy": ["{{ 1 }}"]}})
    )
    for name in ("filesystem", "url_to_fs", "get_filesystem_class"):
        monkeypatch.setattr(fsspec, name, pytest.fail)
        for module in (fsspec.core, fsspec.registry):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, pytest.fail)
    assert REFUSED[address] in refuses(lambda: read_vectors(address.format(tmp_path), "image"))


def test_a_chain_in_a_recipe_reaches_no_file(folder: Path, call: Call) -> None:
    (folder / "ref.json").write_text("not even read")
    chain = f"reference://x.npy::file://{folder}/ref.json"
    (folder / "recipe.toml").write_text(
        f'{DATASET}[inputs]\nimage_embeddings = "{chain}"\ncaption_embeddings = "{chain}"\n{FEW}'
    )
    for words in ((), ("--allow-host", "reference://x.npy")):
        outcome = call("run", "recipe.toml", *words)
        assert outcome.code == 3
        assert "reference:// is not supported" in outcome.err


def test_a_folder_of_a_dataset_that_is_called_like_a_chain(
    tmp_path: Path, refuses: Refuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library of Hugging Face would open its name through fsspec."""
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "reference:" / "x::file:" / "y"
    inside.mkdir(parents=True)
    (inside / "state.json").write_text("{}")
    for source in ("reference://x::file://y", "reference:/x::file:/y"):
        assert "is an address" in refuses(lambda source=source: load_dataset("huggingface", dataset=source))


def test_a_dataset_does_not_have_pictures_fetched(folder: Path, site: Served, call: Call) -> None:
    (folder / "d.jsonl").write_text(json.dumps({"image": site.at("p.jpg"), "text": "a dog"}) + "\n")
    assert call("encode", "--model", "tiny", "--dataset", "d.jsonl", "-o", "out").code == 3
    assert site.asked == []


def test_options_of_endpoints_are_the_only_queries_that_are_shown() -> None:
    assert {"model", "workers", *ENDPOINT_OPTIONS, *_OPTIONS} == ENDPOINT_NAMES


def test_two_queries_have_two_copies(folder: Path, site: Served) -> None:
    """Although the server says the same of both: the same length, the same tag."""
    copies = [local_copy(site.at(f"img.npy?file={name}")) for name in ("a", "b")]
    assert copies[0] != copies[1]
    count = len(site.asked)
    assert local_copy(site.at("img.npy?file=a")) == copies[0]
    assert len(site.asked) == count + 1, "asked whether it has changed, and not fetched again"
    signed = [local_copy(site.at(f"img.npy?X-Amz-Date={day}&X-Amz-Signature=s{day}")) for day in (1, 2)]
    assert signed[0] == signed[1]


class Hanging:
    """A store that looks for credentials for a while as soon as it is made."""

    def __init__(self, **_: Any) -> None:
        time.sleep(20)

    _get_kwargs_from_urls = staticmethod(lambda address: {})
    _strip_protocol = staticmethod(lambda address: address)


def test_a_store_that_hangs_while_it_is_made(monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("CROSSLENS_MAX_REMOTE_SECONDS", "1")
    monkeypatch.setattr(sys.modules[__name__], "gcsfs", Hanging, raising=False)
    monkeypatch.setitem(remote._STORES, "gs", (__name__, "gcsfs", "gcsfs"))
    begin = time.monotonic()
    message = refuses(lambda: local_copy("gs://bucket/x.npy"))
    assert time.monotonic() - begin < 10
    assert "gs://bucket/x.npy: no answer within 1 seconds" in message
    assert "GOOGLE_APPLICATION_CREDENTIALS" in message


@pytest.fixture
def broken_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sockets and lookups that fail, and what they were asked for."""
    tried: list[str] = []

    def fail(*arguments: Any, **_: Any) -> None:
        tried.append(str(arguments))
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, fail)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, fail)
    return tried


VECTORS = ("--image-embeddings", "ADDRESS/img.npy", "--caption-embeddings", "ADDRESS/cap.npy")
HUB = ("--model", "clip:owner/name")
OFFLINE: dict[str, list[tuple[str, ...]]] = {
    "audit": [("--dataset", "./data", *VECTORS, "-o", "out"), ("--dataset", "./data", *HUB, "-o", "out")],
    "calibrate": [("theirs-audited", "--only", "hub", "--allow-host", "HOST")],
    "evaluate": [
        ("--dataset", "./data", *VECTORS),
        ("--dataset", "./data", *VECTORS, "-o", "s3://bucket/run"),
        ("--dataset", "./data", "--scores", "scores.npy", "-o", "s3://bucket/run"),
        ("--dataset", "./data", *HUB, "--image-folder", "."),
        ("--dataset", "./data", "--scores", "scores.npy", "--metrics", "NCS[embed:vectors:ADDRESS/cap]@2"),
        ("--dataset", "./data", "--scores", "scores.npy", "--rerank", "vqa:https://example.org/v1?model=m"),
        ("--dataset", "./data", "--scores", "scores.npy", "--rerank", "blip:owner/name", "--image-folder", "."),
    ],
    "run": [("theirs", "--allow-host", "HOST"), ("theirs", "-o", "s3://bucket/run", "--allow-host", "HOST")],
    "encode": [("--dataset", "./data", *HUB, "-o", "out")],
    "export": [("s3://bucket/run", "--to", "wandb")],
    "counterfactual": [("s3://bucket/run", *HUB, "--query", "p0#0")],
    "caption-sets": [
        ("--before", "./data", "--after", "./data", "--image-embeddings", "ADDRESS/img.npy",
         "--before-embeddings", "ADDRESS/cap.npy", "--after-embeddings", "ADDRESS/cap.npy"),
    ],
    "robustness": [
        ("--dataset", "./data", "--perturbations", "char_swap", "-o", "out", *HUB),
        ("--dataset", "./data", "--perturbations", "char_swap", "-o", "out", *VECTORS),
    ],
    "hard-negatives": [("--dataset", "./data", *HUB), ("--dataset", "./data", "--pair-model", "vqa:https://h/v1?model=m")],
    "judge": [("p.csv", "--model", "m", "--endpoint", "https://h/v1", "--dataset", "./data", "-o", "a.jsonl")],
    "analyze run": [("probes", "theirs", "--allow-host", "HOST")],
    "analyze discriminability": [("--dataset", "./data", *VECTORS), ("--dataset", "./data", *HUB)],
    "analyze polysemy": [("--dataset", "./data", "--sizes", "1,2", *HUB)],
    "analyze difficulty": [("--runs", "theirs", "--calibration", "self", "-o", "l.csv", "--allow-host", "HOST")],
    "analyze categories": [
        ("theirs", "--difficulty", "levels.csv", "--rejected", "rejected.csv", "--allow-host", "HOST"),
    ],
    "analyze scorers": [
        ("theirs", "--phi", "cider", "--dataset", "./data", "--allow-host", "HOST"),
        ("--dataset", "./data", "--phi", "cider", *HUB),
    ],
    "build recos": [("--candidates", "./data", "--encoder", "clip:owner/name", "-o", "out")],
    "build imp": [
        ("--images", "./data", "--pool", "./data", "--image-embeddings", "ADDRESS/img.npy",
         "--pool-embeddings", "ADDRESS/img.npy", "-o", "out"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("command", OFFLINE)
def test_offline_no_command_tries_to_connect(
    command: str, folder: Path, site: Served, call: Call, broken_network: list[str]
) -> None:
    write_levels(folder)
    (folder / "p.csv").write_text("image,caption\np0,p0#0\n")
    audited = AuditFolder.open(folder / "theirs-audited", "key", {"runs": {"theirs": ""}}, overwrite=False)
    shutil.copytree(folder / "theirs", audited.run_folder("theirs"))
    shutil.copytree(folder / "data", audited.path / "runs" / "data")
    for words in OFFLINE[command]:
        command_words = (word.replace("ADDRESS", f"http://{site.host}").replace("HOST", site.host) for word in words)
        outcome = call(*command.split(), *command_words, "--offline")
        assert outcome.code in (2, 3, 4), (words, outcome.err)  # the last: without torch no model is looked for
        assert broken_network == [], words
        if {"ADDRESS", "HOST"} & set(re.findall("[A-Z]{4,}", " ".join(words))):
            assert "offline mode opens no connection" in outcome.err, words


def test_every_command_with_the_flag_is_tried() -> None:
    def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
        for word, inner in command.commands.items():
            yield from commands(inner, f"{word} ") if hasattr(inner, "commands") else [(f"{name}{word}", inner)]

    offline_commands = {
        name for name, each in commands(_root_command()) if any(flag.name == "offline" for flag in each.params)
    }
    assert offline_commands == set(OFFLINE)


def test_offline_no_library_connects(site: Served) -> None:
    """Below all of them: whatever opens a socket is refused, in every thread, and this machine is not."""
    import urllib.request

    def connect() -> None:
        with pytest.raises(OSError, match=r"offline mode opens no connection to example\.org"):
            urllib.request.urlopen("http://example.org/", timeout=1)
        with socket.socket() as sock, pytest.raises(OSError, match=r"to 192\.0\.2\.1"):
            sock.connect(("192.0.2.1", 80))
        with socket.socket() as sock, pytest.raises(OSError, match=r"to 192\.0\.2\.1"):
            sock.connect_ex(("192.0.2.1", 80))
        with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(OSError, match=r"to 192\.0\.2\.1"):
            sock.sendto(b"x", ("192.0.2.1", 53))
        with socket.socket(socket.AF_INET6) as sock, pytest.raises(OSError, match="to 2001:db8::1"):
            sock.connect(("2001:db8::1", 80, 0, 0))
        with pytest.raises(OSError, match=r"to example\.org"):
            socket.gethostbyname("example.org")
        with pytest.raises(OSError, match=r"to 192\.0\.2\.1"):
            socket.getnameinfo(("192.0.2.1", 80), 0)

    with offline():
        connect()
        outcomes: list[BaseException | None] = []
        thread = threading.Thread(target=lambda: outcomes.append(connect()))  # type: ignore[func-returns-value]
        thread.start()
        thread.join()
        assert outcomes == [None]
        urllib.request.urlopen(site.at("x")).close()
        with pytest.raises(UsageError, match="offline mode opens no connection"):
            local_copy(site.at("img.npy"))
    assert not trust.is_offline()
    with offline(False):
        assert not trust.is_offline()


def test_a_wrong_value_of_a_query_is_in_no_error(refuses: Refuses, site: Served) -> None:
    for name in ("pass", "code", "jwt", "hmac", "bearer", "ticket", "x"):
        message = refuses(lambda name=name: read_vectors(site.at(f"to/ftp://h/?{name}=MARKED"), "image"))
        assert "MARKED" not in message
    with pytest.raises(InputError) as caught:
        read_vectors("https://host/x?sig='MARKED", "image")
    assert "MARKED" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("behind", ["?code=MARKED", "#code=MARKED", "?MARKED", ";code=MARKED", "?a=1;b#MARKED=MARKED"])
def test_no_copy_is_named_after_a_secret(behind: str, folder: Path, site: Served) -> None:
    copy = local_copy(site.at(f"img.npy{behind}"))
    assert copy.name == "img.npy"
    assert "MARKED" not in str(copy)
    assert local_copy(site.at("a;b.npy")).name == "a;b.npy"


def test_a_query_is_in_no_file(folder: Path, site: Served, call: Call) -> None:
    """Of a run, of an audit with the commands of its stages, or of the origin of a benchmark; nor is it printed."""
    images, captions = site.at("img.npy?code=MARKED"), site.at("cap.npy?MARKED")
    vectors = ("--dataset", "./data", "--image-embeddings", images, "--caption-embeddings", captions)
    outcomes = [call("evaluate", *vectors, "--resamples", "0", "-o", "run", *json) for json in (("--json",), ())]
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert "up to date" in outcomes[1].err
    # Its stages read the vectors from the recipe of the run, which has no queries: what was given completes them.
    request = AuditRequest(
        (DatasetSource("./data"),), inputs=InputOptions(image_embeddings=images, caption_embeddings=captions)
    )
    only = ("polysemy", "difficulty")
    audit = run_audit(request, "audited", AuditOptions(only=only, quick=True, resamples=10), command=("audit", images))
    assert {stage.stage for stage in audit.results} >= {*only}, audit.skipped
    printed = "".join(outcome.out + outcome.err for outcome in outcomes)
    for file in folder.rglob("*"):
        assert not file.is_file() or b"MARKED" not in file.read_bytes(), file
    assert "MARKED" not in printed
    assert 'img.npy?code=***"' in (folder / "run" / "recipe.toml").read_text()
    again = call("run", "run/recipe.toml", "--allow-host", site.host)
    assert again.code == 3
    assert "its parts *** are not here: runs and recipes do not keep them" in again.err
    assert absolute(images) == site.at("img.npy?code=***")
