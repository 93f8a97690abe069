"""Run as a program: kills one command at many of its steps, and reports what does not hold afterwards.

``python killing.py FOLDER OLD NEW OUTPUTS WHOLE POINTS`` with the inputs in ``FOLDER/inputs``. Every command runs in a
fork of this process, which has imported everything and started no thread; so a kill costs no start of Python.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
STEPS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "fcntl.flock", "ctypes.dlsym")
KILLED = 137
Content = dict[str, bytes]


def main() -> None:
    root, old, new, outputs, whole, points = Path(sys.argv[1]), *sys.argv[2:7]
    os.environ["CROSSLENS_CACHE"] = str(root / "work" / "cache")
    judge = Judge(root, shlex.split(old), shlex.split(new), outputs.split(","), whole == "True")
    print(json.dumps(judge.failures(int(points))))


class Judge:
    def __init__(self, root: Path, old: list[str], new: list[str], outputs: list[str], whole: bool) -> None:
        self.work, self.before, self.outputs, self.whole = root / "work", root / "before", outputs, whole
        self.new = new
        shutil.copytree(root / "inputs", self.work)
        used = root / "modules"
        assert self.run(old, done=lambda: used.write_text("\n".join(sys.modules))) == 0, "the old result"
        for name in used.read_text().splitlines():
            if name.startswith("crosslens."):
                import_module(name)
        self.work.rename(self.before)
        self.reset()
        self.old_content = self.content()
        self.steps = self.count()
        self.new_content = self.content()
        assert self.old_content != self.new_content

    def failures(self, points: int) -> list[str]:
        steps = sorted({round(1 + at * (self.steps - 1) / max(points - 1, 1)) for at in range(points)})
        return [f"step {step} of {self.steps}: {problem}" for step in steps for problem in self.problems(step)]

    def problems(self, step: int) -> list[str]:
        self.reset()
        code = self.run(self.new, lambda: kill_at(step))
        after = self.content()
        problems = [] if code == KILLED else [f"exit {code} instead of a kill"]
        if self.whole and after not in (self.old_content, self.new_content):
            problems.append(f"neither the old result nor the new one: {self.difference(after)}")
        for name, data in after.items():
            # In a folder that grows, a killed process leaves what it was at; the same command goes on there.
            if "crosslens-partial" not in name and data not in (self.old_content.get(name), self.new_content.get(name)):
                problems.append(f"{name} is neither old nor new")
        code = self.run(self.new)
        if code != 0:
            problems.append(f"the same command again: exit {code}")
        if self.content() != self.new_content:
            problems.append(f"another result than undisturbed: {self.difference(self.content())}")
        if leftovers := [str(path.relative_to(self.work)) for path in self.work.rglob("*crosslens-partial*")]:
            problems.append(f"left behind: {leftovers}")
        return problems

    def difference(self, content: Content) -> str:
        sides = ((self.old_content, "old"), (self.new_content, "new"))
        return "; ".join(
            f"{label}: {[name for name in {*content, *side} if content.get(name) != side.get(name)]}"
            for side, label in sides
        )

    def reset(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.before, self.work)

    def content(self) -> Content:
        paths = [self.work / output for output in self.outputs]
        files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
        return {str(file.relative_to(self.work)): file.read_bytes() for file in files}

    def count(self) -> int:
        tally = self.work.parent / "steps"
        assert self.run(self.new, lambda: count_into(tally)) == 0, "the new result"
        return tally.stat().st_size

    def run(
        self, words: list[str], prepare: Callable[[], None] = lambda: None, done: Callable[[], object] = lambda: None
    ) -> int:
        """The exit code of a command in a process of its own."""
        sys.stdout.flush()
        process = os.fork()
        if process:
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        code = 99
        try:
            from crosslens.cli import main as command

            if words[0] == "audit":  # its results say how long each stage took
                from crosslens.audits import running

                running.time = SimpleNamespace(monotonic=lambda: 0.0)
            os.chdir(self.work)
            sys.argv = ["crosslens", *words]
            log = os.open(self.work.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for stream in (1, 2):
                os.dup2(log, stream)
            prepare()
            code = command(words)
            done()
        finally:
            os._exit(code)


def kill_at(step: int) -> None:
    """End this process right before its ``step``-th change to the file system."""
    calls = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal calls
        if is_step(event, arguments):
            calls += 1
            if calls == step:
                os._exit(KILLED)

    sys.addaudithook(hook)


def count_into(file: Path) -> None:
    """Write one byte into ``file`` for every change to the file system."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if is_step(event, arguments):
            os.write(handle, b".")

    sys.addaudithook(hook)


def is_step(event: str, arguments: tuple[object, ...]) -> bool:
    if event == "open":
        return isinstance(arguments[2], int) and bool(arguments[2] & WRITING)
    return event in STEPS


if __name__ == "__main__":
    import numpy  # noqa: F401  imported before the forks, which would each do it again
    import polars  # noqa: F401

    main()
