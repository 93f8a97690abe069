"""The recipe itself: which data, which inputs, which options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from crosslens.core import (
    CrosslensError,
    FormatVersionError,
    InputError,
    UnknownNameError,
    ValueType,
    argument,
    declarations,
    is_plugin_loaded,
    is_remote,
    load_plugin,
    reading,
    without_secrets,
)
from crosslens.data import (
    ARRAY_SUFFIXES,
    EXTRA_IMAGES,
    JUDGEMENT_SETS,
    KNOWN,
    READERS,
    is_dataset_name,
    is_dataset_path,
    path_options,
    read_text,
    reader_options,
)
from crosslens.encode import ONE_SOURCE, excluding_sources, given_sources, map_path
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.protocols.protocol import PROTOCOLS
from crosslens.pipeline.recipe.options import NAMED_INPUTS, InputOptions, ModelOptions, RerankOptions, parse_named_input
from crosslens.storage import BARE_KEY, SettingsFile, TrustCode, file_fingerprint, named_by, require_trust, trusting

VERSION = 1
SOURCE_KEYS = ("model", "items", "rerank_model", "pictures", "similarities", "plugins", "corpus", "queries")
"""Fingerprints beside those of the inputs: revisions of models and similarities, what models were given, plugins."""

_SPELLED = {"model": "a name in [model]", "rerank": "a model in [rerank]", "dataset": "a [dataset]",
            "queries": "[queries]"}  # fmt: skip
"""How recipes write what is not simply a key."""


class NewerRecipeError(InputError, FormatVersionError):
    """A recipe written by a newer crosslens than this one, with the line that says so."""


def _check_names(page: SettingsFile, options: EvaluateOptions) -> None:
    """Raise for metrics that cannot be read, and for unknown names of anything else that is registered."""
    from crosslens.metrics import TIES, parse_metrics
    from crosslens.rank import BACKENDS, SCORES

    if options.metrics:
        try:
            parse_metrics(options.metrics)
        except CrosslensError as error:
            raise page.fail(("options", "metrics"), error.problem, fix=error.fix) from error
    names = {
        "ties": TIES,
        "backend": tuple(BACKENDS),
        "score": tuple(SCORES.names()),
        "protocol": tuple(PROTOCOLS.names()),
    }
    for key, allowed in names.items():
        name = str(getattr(options, key) or allowed[0]).partition("[")[0].strip()  # smooth-chamfer[alpha=8] has options
        if name not in allowed:
            unknown = UnknownNameError(key, name, allowed)
            raise page.fail(("options", key), unknown.problem, fix=unknown.fix)


def _as_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _dataset(page: SettingsFile, base: Path, table: str) -> dict[str, Any]:
    """A table that names a dataset and the options of its reader."""
    content = page.table(table)
    if not content:
        return {}
    source = content.get("source")
    if not isinstance(source, str):
        raise page.fail(
            (table, "source") if source is not None else (table,),
            "the dataset has no source" if source is None else f"source = {source!r}",
            'source = "coco" (a reader) or source = "folder/of/data" (a path)',
        )
    options = reader_options(source)
    if is_dataset_name(source, base):
        page.refuse_unknown((table,), content, ("source", EXTRA_IMAGES, *options))
    elif not is_dataset_path(source, base):
        unknown = UnknownNameError("dataset reader", source, [*READERS.names(), *KNOWN])
        raise page.fail((table, "source"), unknown.problem, fix=unknown.fix)
    page.value((table, EXTRA_IMAGES), content.get(EXTRA_IMAGES, ""), str)
    for key, value in content.items():
        if key in options and not options[key].accepts(value):
            raise page.fail((table, key), f"{key} = {value!r}", options[key].type.expected)
    return _as_tuples(content)


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
        """The recipe in a TOML text, which comes from ``origin``; anything that is not a recipe raises."""
        page = SettingsFile.parse(text)
        tables = ("dataset", "queries", "inputs", "model", "rerank", "options", "fingerprints")
        page.refuse_unknown((), page.content, ("version", "name", "plugins", *tables))
        version = page.content.get("version", VERSION)
        if not ValueType.of(int).accepts(version) or version < 1:
            raise page.fail(("version",), f"version = {version!r}", f"the number {VERSION}")
        if version > VERSION:
            raise NewerRecipeError(
                f"the recipe has format version {version}, this crosslens reads up to version {VERSION}",
                row=page.line(("version",)),
                fix="pip install --upgrade crosslens",
            )
        plugins = page.value(("plugins",), page.content.get("plugins", []), tuple[str, ...])
        # First: the rest of the recipe may use what they register. It is code that its author chose;
        # a plugin of the same content that the command line named is not loaded again.
        with named_by(origin):
            for plugin in plugins:
                file = base / Path(plugin).expanduser()
                if not is_plugin_loaded(file):
                    require_trust(plugin, file.absolute())
                    load_plugin(file)
        dataset, queries = _dataset(page, base, "dataset"), _dataset(page, base, "queries")
        hashes = page.table("fingerprints")
        recipe = Recipe(
            dataset.pop("source", None), dataset, page.options(InputOptions, "inputs"),
            page.options(ModelOptions, "model"), page.options(RerankOptions, "rerank"),
            page.options(EvaluateOptions, "options"),
            page.value(("name",), page.content["name"], str) if "name" in page.content else None,
            _as_tuples(hashes), plugins, base, origin, queries.pop("source", None), queries,
        )  # fmt: skip
        _check_names(page, recipe.options)
        page.refuse_unknown(("fingerprints",), hashes, ("dataset", *declarations(InputOptions), *SOURCE_KEYS))
        for key, value in hashes.items():
            if ValueType.of(tuple[str, ...]).convert(value) is None:
                raise page.fail(("fingerprints", key), f"{key} = {value!r}", "the hash that crosslens wrote there")
        if conflict := recipe.conflict(lambda key: _SPELLED.get(key, key)):
            where, problem, fix = conflict
            raise page.fail(tuple(where.split(".")), problem, fix=fix)
        return recipe

    def conflict(self, spell: Callable[[str], str] = argument) -> tuple[str, str, str] | None:
        """The first inputs that exclude or require each other: a key of the recipe, the problem and its fix.

        ``spell`` writes keys for the reader.
        """
        inputs, model, rerank, directions = self.inputs, self.model, self.rerank, self.options.directions
        dataset, queries = self.dataset is not None, self.queries is not None
        re_ranked, modelled, add_dataset = rerank.model is not None, model.name is not None, f"add {spell('dataset')}"
        text_only = modelled and (model.image_text is not None or queries)
        # Pictures belong to the dataset, whoever made the vectors; a pair scorer has a precision, too.
        elsewhere = ("image_folder",) * dataset + ("precision",) * re_ranked
        unused = [
            entry.name
            for entry in fields(model)
            if entry.name not in elsewhere and getattr(model, entry.name) != entry.default
        ]
        # Exactly one kind of input is evaluated, and of embeddings both sides.
        images, captions = inputs.image_embeddings, inputs.caption_embeddings
        kinds = given_sources(embeddings=(images, captions), scores=inputs.scores, runs=inputs.runs, model=model.name)
        keys = {"embeddings": f"inputs.{'image' if images else 'caption'}_embeddings", "model": "model.name"}
        source = keys.get(kinds[-1], f"inputs.{kinds[-1]}") if kinds else "inputs"
        embeddings = f"{spell('image_embeddings')} and {spell('caption_embeddings')}"
        missing = "caption" if images else "image"
        rules = (
            *(
                (getattr(inputs, f"{side}_ids") and not getattr(inputs, f"{side}_embeddings"), f"inputs.{side}_ids",
                 f"{side} ids without {side} embeddings", f"add {spell(f'{side}_embeddings')}")
                for side in ("image", "caption")
            ),
            (queries and not modelled, "queries",
             f"{spell('queries')} requires {spell('model')}", f"add {spell('model')}: it encodes both text sets"),
            (not re_ranked and rerank != RerankOptions(), "rerank",
             "a re-ranking depth without a model", f"add {spell('rerank')}, or drop it"),
            (re_ranked and not dataset, "rerank.model", f"{spell('rerank')} requires {spell('dataset')}", add_dataset),
            (re_ranked and text_only, "rerank.model",
             "text-only retrieval has no images to re-rank", f"drop {spell('rerank')}, or {spell('image_text')}"),
            (not modelled and unused == ["image_folder"], "model.image_folder",
             f"{spell('image_folder')} requires {spell('dataset')}", add_dataset),
            (not modelled and unused, f"model.{unused[0] if unused else ''}",
             f"{' and '.join(map(spell, unused))}, but no model", f"add {spell('model')}, or drop it"),
            (modelled and not dataset, "model.name", f"{spell('model')} requires {spell('dataset')}", add_dataset),
            (text_only and tuple(directions) not in ((), ("t2t",)), "model.image_text",
             "text-only retrieval has one direction, t2t", f"drop {spell('directions')}"),
            (model.shared_images and not queries, "model.shared_images",
             f"{spell('shared_images')} requires {spell('queries')}", f"add {spell('queries')}, or drop it"),
            (not kinds, source, "nothing to evaluate",
             f"add {embeddings}, or {spell('scores')}, or {spell('runs')}, or {spell('model')}"),
            (len(kinds) > 1, source, excluding_sources(kinds), ONE_SOURCE),
            (bool(images) != bool(captions), source, f"no {missing} embeddings",
             f"add {spell(f'{missing}_embeddings')}"),
            (not text_only and not set(directions) <= {"i2t", "t2i"}, "options.directions",
             f"directions = {', '.join(directions)}",
             "use i2t (image to text), t2i (text to image), or both; t2t is text-only retrieval: "
             f"{spell('image_text')}"),
            (inputs.scores and not dataset, "inputs.scores", "scores without a dataset", add_dataset),
            (inputs.runs and not dataset and not inputs.qrels, "inputs.runs",
             "a run without judgements", f"add {spell('qrels')}, or {spell('dataset')}"),
            (inputs.runs and directions and len(directions) != len(inputs.runs), "inputs.runs",
             f"{len(inputs.runs)} run files and {len(directions)} directions",
             f"name {spell('directions')} for each of {spell('runs')}, in that order"),
        )  # fmt: skip
        return next(((key, problem, fix) for applies, key, problem, fix in rules if applies), None)

    def to_toml(self) -> str:
        """The recipe as a file that :meth:`read` understands: every option, and no credentials of addresses."""
        encoded = self.model.name or self.rerank.model
        text = write_toml(
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
        return "# Repeat this evaluation with: crosslens run recipe.toml\n" + without_secrets(text)

    def map_paths(self, change: Callable[[str], str]) -> Recipe:
        inputs: dict[str, Any] = {}
        for key, value in asdict(self.inputs).items():
            if key in NAMED_INPUTS:
                entries = []
                for name, source in (parse_named_input(entry, key) for entry in value):
                    # A source that is a model's name holds no path, or one of its own.
                    is_file = Path(source).suffix.lower() in (*ARRAY_SUFFIXES, ".csv") or (self.base / source).exists()
                    entries.append(f"{name}={change(source) if is_file else self._map_name(source, change)}")
                inputs[key] = tuple(entries)
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
        """The recipe with further plugins; one of the same content is listed once."""
        fingerprints = {file_fingerprint([self.base / plugin]) for plugin in self.plugins}
        added = [str(file.absolute()) for file in files if file_fingerprint([file]) not in fingerprints]
        return replace(self, plugins=(*self.plugins, *added))

    def _map_dataset(
        self, source: str | None, options: Mapping[str, Any], change: Callable[[str], str]
    ) -> tuple[str | None, dict[str, Any]]:
        paths = path_options(source, options, self.base)
        changed = {key: change(value) if key in paths else value for key, value in options.items()}
        return change(source) if source is not None and "source" in paths else source, changed

    def _map_name(self, model: str | None, change: Callable[[str], str]) -> str | None:
        return None if model is None else map_path(model, self.base, change)

    @property
    def addresses(self) -> list[str]:
        """The inputs that are not on this machine."""
        return [file for file in (self.inputs.image_embeddings, self.inputs.caption_embeddings) if is_remote(file)]

    def absolute(self) -> Recipe:
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
