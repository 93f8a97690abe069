"""Choosing an engine, what a worker does with a task, and every error that a cluster can give."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import crosslens as cl
from crosslens.core import (
    CrosslensError,
    InputError,
    MissingExtraError,
    UnknownNameError,
    UsageError,
    available_cores,
    core_limit,
    limit_cores,
)
from crosslens.core.errors import UserCodeError
from crosslens.engine import EngineOptions, LocalEngine, current_engine, ray_engine
from crosslens.engine.ray_engine import _SHARED, RayEngine, TaskFailure, TaskSetting, _task_error, execute, pack
from tests.engine.stand_in import StandInEngine

HERE = TaskSetting(cl.__version__, (), True)


@pytest.fixture(autouse=True)
def own_limits() -> Iterator[None]:
    _SHARED.clear()
    yield
    limit_cores(None)
    _SHARED.clear()


def add(shared: int, task: int) -> int:
    if task < 0:
        raise InputError(f"a negative task {task}", row=task, expected="none")
    return shared + task


def test_the_local_engine_works_when_it_is_asked() -> None:
    tasks_started, done = list[int](), list[int]()

    def note(shared: int, task: int) -> int:
        tasks_started.append(task)
        return shared * task

    results = LocalEngine().run(note, 10, iter(range(5)), done=done.append)
    assert [next(results), next(results)] == [0, 10]
    assert tasks_started == [0, 1], "nothing is computed ahead"
    assert list(results) == [20, 30, 40]
    assert done == list(range(5))


def test_results_of_the_stand_in_are_in_order_and_bounded() -> None:
    engine, done = StandInEngine(slots=2, dies=0.5), list[int]()
    assert list(engine.run(add, 100, range(50), done=done.append)) == list(range(100, 150))
    assert engine.most_under_way <= 4
    assert engine.attempts["add"] > 50, "some died"
    assert sorted(done) == list(range(50)), "none lost, none twice"
    assert done != sorted(done)


def test_engines_are_nested() -> None:
    assert current_engine().name == "local"
    outer, inner = StandInEngine(), StandInEngine()
    with cl.use_engine(outer):
        assert current_engine() is outer
        with cl.use_engine(inner):
            assert current_engine() is inner
        with cl.use_engine("local"):
            assert not current_engine().distributed
        assert current_engine() is outer
    assert current_engine().name == "local"


def test_engines_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="did you mean ray"), cl.use_engine("rai"):
        pass
    with pytest.raises(UsageError, match="ray_address= requires engine='ray'"):
        EngineOptions(ray_address="10.0.0.1:6379")


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"crosslens\[ray\]"), cl.use_engine("ray"):
        pass


@pytest.fixture
def pretended_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: True)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:six", ":"])
def test_addresses_that_are_none(pretended_ray: None, address: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT or auto"):
        RayEngine(address)


def test_an_address_that_nobody_answers_at(pretended_ray: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(CrosslensError, match=f"no Ray cluster answers at 127.0.0.1:{port}") as raised:
        RayEngine(f"127.0.0.1:{port}")
    assert raised.value.option == "ray_address"
    with pytest.raises(CrosslensError, match="no Ray cluster answers"):
        RayEngine("127.0.0.1:99999")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (RuntimeError("Version mismatch: The cluster was started with:\n  Ray: 2.9.0"), "runs other versions.*2.9.0"),
        (ConnectionError("Could not find any running Ray instance."), "answers at auto: Could not find"),
        (RuntimeError("\n  something else \n"), "answers at auto: something else"),
    ],
)
def test_clusters_that_cannot_be_joined(
    pretended_ray: None, monkeypatch: pytest.MonkeyPatch, raised: Exception, message: str
) -> None:
    ray = pytest.importorskip("ray")

    def refuse(**options: Any) -> None:
        raise raised

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(CrosslensError, match=message):
        RayEngine("auto")


@pytest.mark.parametrize("raised", ["ConnectionError", "AuthenticationError"])
def test_clusters_that_require_a_token(
    pretended_ray: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], raised: str
) -> None:
    """Ray writes the reason to standard error, once a second, and says itself that nobody answers."""
    ray = pytest.importorskip("ray")

    def refuse(**options: Any) -> None:
        if raised == "ConnectionError":
            os.write(2, b"gcs_client.cc:210: RPC error: InvalidAuthToken: Authentication token is missing\n")
            raise ConnectionError("Failed to connect to Ray cluster")
        raise ray.exceptions.AuthenticationError("no authentication token was found")

    if not hasattr(ray.exceptions, "AuthenticationError"):
        pytest.skip("a Ray without tokens")
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(CrosslensError, match="requires its authentication token") as error:
        RayEngine("auto")
    assert "RAY_AUTH_MODE=token" in str(error.value)
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"


def test_termination_counts_as_ctrl_c(pretended_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Ray installs; and afterwards, or where the program has its own answer, as before."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "init", lambda **options: signal.signal(signal.SIGTERM, lambda *given: os._exit(1)))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        engine = RayEngine("auto")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        engine.close()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        RayEngine("auto")
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        monkeypatch.setattr(ray, "init", lambda **options: sys.exit(15))
        with pytest.raises(KeyboardInterrupt):
            RayEngine("auto")
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ray_prints_nothing_between_results(
    pretended_ray: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = pytest.importorskip("ray")
    from ray._private import worker

    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)
    monkeypatch.setattr(ray, "init", lambda **options: None)
    RayEngine("auto")
    worker.print_to_stdstream({"lines": ["a task is repeated"], "pid": "raylet", "is_err": False}, ignore_prefix=False)
    assert capsys.readouterr() == ("", "")


def test_a_node_without_crosslens() -> None:
    class Error(Exception):
        cause = None

    lost = Error("The remote function failed to import: ModuleNotFoundError: No module named 'crosslens'")
    assert "install crosslens" in str(_task_error(lost))
    missing = Error()
    missing.cause = ModuleNotFoundError(name="crosslens.engine.engine")  # type: ignore[assignment]
    assert "no crosslens" in str(_task_error(missing))
    error = Error()
    error.cause = ZeroDivisionError()  # type: ignore[assignment]
    assert isinstance(_task_error(error), ZeroDivisionError)


# The side of the worker


def test_a_worker_uses_one_core_and_keeps_what_is_shared() -> None:
    fetched = []

    def fetch() -> Any:
        fetched.append(1)
        return pack(40)

    assert [execute(HERE, pack((add, task)), "key", fetch) for task in (1, 2)] == [41, 42]
    assert len(fetched) == 1
    assert core_limit() == available_cores() == 1


FAULTS = """
import resource, sys, threading
import numpy as np
from crosslens.engine.ray_engine import _keep_memory

def work():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        blocks = [np.ones(2 << 20, np.uint8) for _ in range(4)]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if sys.argv[1] == "kept":
    _keep_memory()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_a_worker_reuses_memory() -> None:
    """50 times 8 MB in blocks: 2,048 pages at least, and 100,000 where each block is mapped anew."""
    faults = {
        how: int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "fresh")
    }
    assert faults["kept"] < 6_000 < faults["fresh"], faults


def test_a_worker_of_another_version() -> None:
    failure = execute(TaskSetting("0.0.1", (), True), pack((add, 1)), "key", lambda: pack(1))
    assert isinstance(failure, TaskFailure)
    with pytest.raises(CrosslensError, match=rf"has crosslens {cl.__version__}, and .* by 0.0.1"):
        raise failure.error()


def test_a_worker_without_the_plugin(tmp_path: Path) -> None:
    gone = tmp_path / "mine.py"
    failure = execute(TaskSetting(cl.__version__, (str(gone),), True), pack((add, 1)), "key", lambda: pack(1))
    with pytest.raises(CrosslensError, match=rf"{gone} does not exist on the node .*") as raised:
        raise failure.error()
    assert "storage that all nodes mount" in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        InputError("bad", file="a.csv", row=3, expected="numbers", fix="repair it"),
        UnknownNameError("metric", "Hitt", ["Hit"]),
        MissingExtraError("this", "ray", "ray"),
        UserCodeError("wrong", file="mine.py", line=3, source="x"),
        UsageError("no", fix="yes", option="depth"),
    ],
)
def test_errors_travel_whole(error: CrosslensError) -> None:
    again = TaskFailure.of(error).error()
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_error_in_a_task_is_raised_here() -> None:
    with pytest.raises(InputError, match="a negative task -1") as raised:
        list(StandInEngine().run(add, 0, [1, -1, 2]))
    assert raised.value.row == -1


def test_an_error_in_code_of_the_user_names_its_line(tmp_path: Path) -> None:
    from crosslens.core import load_module

    file = tmp_path / "own_work.py"
    file.write_text("def divide(shared, task):\n    return shared / task\n")
    divide = load_module(str(file)).divide
    failure = execute(HERE, pack((divide, 0)), "key", lambda: pack(1))
    assert "own_work.py:2: ZeroDivisionError in your code" in str(failure.error())
