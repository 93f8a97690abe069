"""The recipe itself: which data, which inputs, which options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from crosslens.core import TrustCode, code_named_by, file_fingerprint, is_remote, reading, trusting
from crosslens.data import ARRAY_SUFFIXES, JUDGEMENT_SETS, path_options, read_text
from crosslens.encode import map_path
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.recipe.options import NAMED_INPUTS, InputOptions, ModelOptions, RerankOptions, parse_named_input
from crosslens.pipeline.recipe.schema import BARE_KEY, VERSION, check


@dataclass(frozen=True)
class Recipe:
    """One evaluation, written down. Paths that are not absolute start from the folder ``base``.

    ``dataset`` is a reader's name or a path, ``dataset_options`` what that reader takes. What is evaluated is in the
    ``inputs``, or is made by the ``model``; ``rerank`` re-ranks the top of every list. ``queries`` and
    ``queries_options`` are a second dataset, whose captions are the queries of text-only retrieval. ``fingerprints``
    are the content hashes of the inputs when the recipe was stored: running it again requires the same content.
    ``plugins`` are Python files that register what the recipe names. ``origin`` is the file it was read from: code that
    it names is not trusted, other than that of a recipe made in Python.
    """

    dataset: str | None = None
    dataset_options: Mapping[str, Any] = field(default_factory=dict)
    inputs: InputOptions = field(default_factory=InputOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    rerank: RerankOptions = field(default_factory=RerankOptions)
    options: EvaluateOptions = field(default_factory=EvaluateOptions)
    name: str | None = None
    fingerprints: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    base: Path = Path()
    origin: str | Path | None = None
    queries: str | None = None
    queries_options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def read(path: str | Path, *, trust_code: TrustCode | None = None) -> Recipe:
        """Read a recipe file; whatever is wrong in it is named with its line. Paths start from the file's folder."""
        path = Path(path)
        text = read_text(path)
        with reading(path), trusting(trust_code):
            return Recipe.parse(text, path.parent, path)

    @staticmethod
    def parse(text: str, base: Path = Path(), origin: str | Path = "the recipe") -> Recipe:
        """The recipe in a TOML text, which comes from ``origin``."""
        with code_named_by(origin):
            content = check(text, base)
        dataset, queries = content.pop("dataset"), content.pop("queries")
        return Recipe(
            dataset.pop("source", None), dataset, base=base, origin=origin, queries=queries.pop("source", None),
            queries_options=queries, **content,
        )  # fmt: skip

    def to_toml(self) -> str:
        """The recipe as a file that :meth:`read` understands, every option written out."""
        encoded = self.model.name or self.rerank.model
        return "# Repeat this evaluation with: crosslens run recipe.toml\n" + write_toml(
            {
                "": {"version": VERSION, "name": self.name, "plugins": self.plugins},
                "dataset": {"source": self.dataset, **self.dataset_options},
                "queries": {"source": self.queries, **self.queries_options},
                "inputs": asdict(self.inputs),
                "model": asdict(self.model) if encoded else {"image_folder": self.model.image_folder},
                "rerank": asdict(self.rerank) if self.rerank.model else {},
                "options": asdict(self.options),
                "fingerprints": self.fingerprints,
            }
        )

    def map_paths(self, change: Callable[[str], str]) -> Recipe:
        """The same recipe with every path in it changed."""
        inputs: dict[str, Any] = {}
        for key, value in asdict(self.inputs).items():
            if key in NAMED_INPUTS:
                inputs[key] = tuple(self._map_named_input(entry, key, change) for entry in value)
            elif (key == "qrels" and value in JUDGEMENT_SETS) or is_remote(value):
                inputs[key] = value
            else:
                inputs[key] = tuple(map(change, value)) if isinstance(value, tuple) else value and change(value)
        dataset, options = self._map_dataset(self.dataset, self.dataset_options, change)
        queries, queries_options = self._map_dataset(self.queries, self.queries_options, change)
        return replace(
            self,
            dataset=dataset,
            dataset_options=options,
            queries=queries,
            queries_options=queries_options,
            inputs=InputOptions(**inputs),
            model=replace(
                self.model,
                name=self._map_name(self.model.name, change),
                image_text=self._map_name(self.model.image_text, change),
                image_folder=None if self.model.image_folder is None else change(self.model.image_folder),
            ),
            rerank=replace(self.rerank, model=self._map_name(self.rerank.model, change)),
            plugins=tuple(map(change, self.plugins)),
        )

    def with_plugins(self, files: Iterable[Path]) -> Recipe:
        """The same recipe with further plugins; one of the same content is listed once."""
        known = {file_fingerprint([self.base / plugin]) for plugin in self.plugins}
        added = [str(file.absolute()) for file in files if file_fingerprint([file]) not in known]
        return replace(self, plugins=(*self.plugins, *added))

    def _map_dataset(
        self, source: str | None, options: Mapping[str, Any], change: Callable[[str], str]
    ) -> tuple[str | None, dict[str, Any]]:
        paths = path_options(source, options, self.base)
        changed = {key: change(value) if key in paths else value for key, value in options.items()}
        return change(source) if source is not None and "source" in paths else source, changed

    def _map_name(self, model: str | None, change: Callable[[str], str]) -> str | None:
        return None if model is None else map_path(model, self.base, change)

    def _map_named_input(self, entry: str, key: str, change: Callable[[str], str]) -> str:
        """``NAME=SOURCE`` with a changed path; a source that is a model's name holds none, or one of its own."""
        name, source = parse_named_input(entry, key)
        is_file = Path(source).suffix.lower() in (*ARRAY_SUFFIXES, ".csv") or (self.base / source).exists()
        return f"{name}={change(source) if is_file else self._map_name(source, change)}"

    def absolute(self) -> Recipe:
        """The same recipe with absolute paths."""
        return self.map_paths(lambda path: str((self.base / path).absolute()))


def write_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Flat tables as TOML, the table ``""`` first and without a header; what is None or empty is left out.

    The standard library reads TOML and does not write it; a recipe holds strings, numbers, booleans and lists of them
    only, so this is a dozen lines rather than one more dependency.
    """
    parts = []
    for name, table in tables.items():
        entries = [f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value not in (None, (), [])]
        if entries:
            parts.append((f"[{_key(name)}]\n" if name else "") + "".join(entries))
    return "\n".join(parts)


def _key(key: str) -> str:
    return key if re.fullmatch(BARE_KEY, key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str | bool):
        # JSON's escapes are TOML's too, except that TOML wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    raise TypeError(f"a recipe cannot hold {type(value).__name__}")
