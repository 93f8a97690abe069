"""The files a recipe names, read into the values that :func:`crosslens.evaluate` takes, and checked by their ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslens.core import CrosslensError, InputError, UsageError, argument, reading
from crosslens.data import (
    ARRAY_SUFFIXES,
    JUDGEMENT_SETS,
    SIDE_FOLDERS,
    Side,
    StoredVectors,
    check_ids,
    check_known,
    check_unique,
    existing_file,
    is_known,
    known_dataset,
    load_dataset,
    on_lines,
    read_lines,
    read_relevance,
    read_run,
    read_vectors,
    read_vectors_and_ids,
    relevance_files,
    vector_files,
)
from crosslens.encode import EncodeOptions, SecondStage, load_pair_scorer, require_trusted_model
from crosslens.engine import Progress
from crosslens.metrics import OWN_SCORES, option_values, parse_metrics
from crosslens.pipeline.evaluations.encoding import LoadedInputs, encode_with_model
from crosslens.pipeline.evaluations.inputs import (
    SAME_SPLIT,
    check_row_count,
    lists_by_direction,
    lists_over,
    read_scores,
    relevance_by_direction,
)
from crosslens.pipeline.options import EvaluateOptions
from crosslens.pipeline.recipe.options import (
    NAMED_INPUTS,
    InputOptions,
    ModelOptions,
    parse_named_input,
    parse_named_inputs,
)
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.similarity import SIMILARITIES, load_similarity
from crosslens.storage import file_fingerprint, named_by, offline, read_manifest, read_whole, require_openable
from crosslens.values import (
    RECIPE_FILE,
    RUN_FILE,
    Dataset,
    Embeddings,
    Ids,
    RankedLists,
    Relevance,
    match_ids,
    unescape_ids,
)

Load = Callable[[Recipe, EncodeOptions, Progress | None], LoadedInputs]

_MATRIX_SUFFIXES = (*ARRAY_SUFFIXES, ".csv")
_REFUSALS = ("untrusted-code", "untrusted-address", "offline")
"""Codes of errors that are about what a recipe names, not about whether it can be read."""


def relevance_encoders(
    recipe: Recipe, dataset: Dataset | None, options: EncodeOptions, progress: Progress | None
) -> dict[str, Any]:
    """The scores of the relevance encoders that the metrics name."""
    sources = parse_named_inputs(recipe.inputs.scores_from, "scores_from")
    encoders: dict[str, Any] = {}
    for name in _named_by_metrics(recipe, "scores_from", sources, "scores_from"):
        if name == OWN_SCORES:
            continue
        if dataset is None:
            raise UsageError(f"{argument('scores_from')} requires a dataset", fix=f"pass {argument('dataset')}")
        source = sources.get(name, name)
        path = Path(source)
        if path.suffix.lower() in ARRAY_SUFFIXES:
            encoders[name] = read_scores(dataset, path)
        elif (path / RUN_FILE).exists():
            loaded = inputs_of_run(path, options, progress, load_inputs)[1]
            if loaded.images is not None and loaded.captions is not None:
                encoders[name] = loaded.images, loaded.captions
                continue
            same = loaded.dataset is not None and (
                (loaded.dataset.image_ids, loaded.dataset.caption_ids) == (dataset.image_ids, dataset.caption_ids)
            )
            if loaded.scores is None or not same:
                raise InputError(
                    "a run of ranked lists, which do not score every pair"
                    if loaded.scores is None
                    else "a run over other images or captions",
                    file=path,
                    expected="a run from embeddings, from a model, or from a score matrix of the same dataset",
                    fix="name such a run, or a score matrix (.npy, images × captions)",
                )
            encoders[name] = loaded.scores
        elif path.is_dir():
            encoders[name] = _from_embeddings(path)
        elif ":" not in source:
            raise UsageError(
                f"scores_from={name} is not defined",
                fix=f"pass {argument('scores_from', f'{name}=…')} with a run folder, a .npy of scores, a folder that "
                "encode wrote, or an encoder such as clip:openai/clip-vit-base-patch32",
                subject=name,
            )
        else:
            encoder = ModelOptions(source, recipe.model.image_folder, precision=recipe.model.precision)
            encoded = encode_with_model(encoder, dataset, encoder.encode_options(options), progress)
            encoders[name] = encoded.images, encoded.captions
    return encoders


def _named_by_metrics(recipe: Recipe, option: str, sources: Iterable[str] = (), key: str = "") -> list[str]:
    """The names that the metrics of a recipe give for an option; of the ``sources`` under ``key`` all must be used."""
    names = option_values(parse_metrics(recipe.options.metrics), option) if recipe.options.metrics else []
    unused = next((name for name in sources if name not in names), None)
    if unused is not None:
        example = {"phi": f"NCS[{unused}]@10", "scores_from": f"DCGcm[scores_from={unused}]@10"}[key]
        problem = f"{argument(key, f'{unused}=…')} is not used by any metric"
        raise UsageError(problem, fix=f"add a metric that uses it: {example}")
    return names


def inputs_of_run(
    folder: Path, options: EncodeOptions, progress: Progress | None, load: Load
) -> tuple[Recipe, LoadedInputs]:
    """The recipe of a stored run, and what it names, read by ``load``."""
    file = folder / RECIPE_FILE

    def read() -> Recipe:
        read_manifest(folder / RUN_FILE, "run")[1].check_folder((RECIPE_FILE,))
        return Recipe.read(existing_file(file))

    try:
        with offline(options.offline), named_by(file):  # whoever made that run chose what it names
            recipe = read_whole(folder, folder / RUN_FILE, read=read)
            return recipe, load(recipe.absolute(), options, progress)
    except CrosslensError as error:
        if error.code in (*_REFUSALS, "changed-file"):
            raise
        raise InputError(
            f"the inputs of this run cannot be read again: {error.problem}",
            file=folder,
            fix="name its embeddings or its score matrix instead",
        ) from error


def _from_embeddings(folder: Path) -> tuple[Any, Any]:
    """What ``crosslens encode`` or clip-retrieval wrote."""

    def read() -> tuple[Any, Any]:
        if all((folder / name).is_dir() for name in SIDE_FOLDERS.values()):
            return read_vectors(folder, "image"), read_vectors(folder, "caption")
        with reading(folder):
            if not ((folder / "images").is_dir() and (folder / "captions").is_dir()):
                raise InputError(
                    "neither a run nor embeddings of both images and captions",
                    expected="a run folder, or the folders images and captions in it, as crosslens encode writes them",
                )
        return Embeddings.load(folder / "images", mmap=True), Embeddings.load(folder / "captions", mmap=True)

    return read_whole(folder, read=read)


_VECTORS: Mapping[str, Side] = {"image_embeddings": "image", "caption_embeddings": "caption"}


def require_trusted_models(recipe: Recipe) -> None:
    """Raise where the recipe, or a run whose scores it takes, names code that may not run or an address not to open."""
    for address in recipe.addresses:
        require_openable(address)
    sources = parse_named_inputs(recipe.inputs.scores_from, "scores_from")
    models = [recipe.model.name, recipe.rerank.model]
    models += [name.partition(":")[2] for name in _named_by_metrics(recipe, "φ")]  # embed:callable:mine.py:Model
    for name in _named_by_metrics(recipe, "scores_from"):
        source = sources.get(name, name)
        if (Path(source) / RUN_FILE).exists():
            require_trusted_run(Path(source))
        else:
            models.append(source)
    for model in models:
        if model is not None:
            require_trusted_model(model)


def require_trusted_run(folder: Path) -> None:
    """Raise where the recipe of a stored run names what it may not; other mistakes are found when it is read."""
    file = folder / RECIPE_FILE
    with named_by(file):
        try:
            require_trusted_models(Recipe.read(file).absolute())
        except (CrosslensError, OSError) as error:
            if getattr(error, "code", "") in _REFUSALS:
                raise


def load_inputs(recipe: Recipe, options: EncodeOptions, progress: Progress | None = None) -> LoadedInputs:
    """Read every input of a recipe whose paths are absolute, or encode the dataset with its model."""
    with named_by(recipe.origin):  # whoever asks, and for whatever purpose
        return _load_named(recipe, options, progress)


def _load_named(recipe: Recipe, options: EncodeOptions, progress: Progress | None) -> LoadedInputs:
    if conflict := recipe.conflict():
        raise UsageError(conflict[1], fix=conflict[2])
    require_trusted_models(recipe)  # before anything is encoded, which may take hours
    encoding = recipe.model.encode_options(options)
    # A mistake in the name of the re-ranker is found before the dataset is encoded.
    scorer = None if recipe.rerank.model is None else load_pair_scorer(recipe.rerank.model, encoding)
    sources = parse_named_inputs(recipe.inputs.phi, "phi")
    matrices = {SIMILARITIES.canonical(name): source for name, source in sources.items()}
    for name in _named_by_metrics(recipe, "φ", matrices, "phi"):
        if name not in matrices and Path(name).suffix.lower() in _MATRIX_SUFFIXES:
            raise UsageError(
                f"{name} is a file; a metric takes the name of a similarity",
                fix=f"write NCS[mine]@10, say, and pass {argument('phi', f'mine={name}')} (phi in a recipe's [inputs])",
            )
    for name, source in matrices.items():
        if Path(source).suffix.lower() not in _MATRIX_SUFFIXES:
            raise UsageError(
                f"{argument('phi', f'{name}={source}')} is not a matrix",
                fix=f"name a file that ends in {', '.join(_MATRIX_SUFFIXES[:-1])} or {_MATRIX_SUFFIXES[-1]}",
            )
    phi = {name: existing_file(source) for name, source in matrices.items()}
    loaded = _load(recipe, encoding, progress)
    encoders = relevance_encoders(recipe, loaded.dataset, options, progress)
    loaded = replace(loaded, phi=phi, scores_from=encoders)
    if scorer is None or loaded.dataset is None:
        return loaded
    second = SecondStage.over(
        loaded.dataset, scorer, recipe.rerank.depth, image_folder=encoding.image_folder, **encoding.stream(progress)
    )
    sources = {"rerank_model": second.scorer.revision, "pictures": second.content}
    fingerprints = {**loaded.fingerprints, **{key: value for key, value in sources.items() if value}}
    return replace(loaded, fingerprints=fingerprints, second_stage=second)


def _load(recipe: Recipe, encoding: EncodeOptions, progress: Progress | None) -> LoadedInputs:
    inputs = recipe.inputs
    dataset = _captioned("the dataset", recipe.dataset, recipe.dataset_options)
    relevance = None if inputs.qrels is None else read_relevance(inputs.qrels)
    if recipe.model.name is not None:
        query_texts = _captioned("the text set of the queries", recipe.queries, recipe.queries_options)
        return replace(encode_with_model(recipe.model, dataset, encoding, progress, query_texts), relevance=relevance)
    lists = _runs(recipe, dataset, relevance)
    if relevance is not None and inputs.qrels is not None:
        if dataset is not None:
            with _naming_line(inputs.qrels):
                relevance_by_direction(dataset, relevance, skip_unknown=recipe.options.skip_unknown)
        for direction, ranked in (lists or {}).items() if dataset is None else ():
            judgements = relevance[direction] if isinstance(relevance, Mapping) else relevance
            queries, judged_ids = ranked.query_ids, (*judgements.query_ids, *judgements.item_ids)
            if (match_ids(queries, tuple(dict.fromkeys(judged_ids))) < 0).all():
                raise InputError(
                    f"none of the {len(queries):,} queries of the run is judged here (such as {queries[0]!r})",
                    file=inputs.qrels,
                    expected=f"judgements of those queries; here are ids such as {judgements.query_ids[0]!r}",
                    fix=SAME_SPLIT,
                )
    return LoadedInputs(
        dataset,
        *read_both(dataset, inputs.image_embeddings, inputs.caption_embeddings, inputs.image_ids, inputs.caption_ids),
        None if inputs.scores is None or dataset is None else read_scores(dataset, inputs.scores),
        lists,
        relevance,
    )


def _captioned(what: str, source: str | None, options: Mapping[str, Any]) -> Dataset | None:
    """The dataset that a recipe names, which must have captions; None where it names none."""
    dataset = None if source is None else load_dataset(source, **options)
    if dataset is not None and not dataset.caption_ids:
        raise InputError(
            f"{what} has no captions",
            file=options.get("captions", source),
            expected="at least one caption",
            fix="check the file and the options of its reader",
        )
    return dataset


def fingerprints(recipe: Recipe, dataset: Dataset | None) -> dict[str, str | tuple[str, ...]]:
    """The content hash of every input: the dataset as it was understood, the other files byte by byte."""

    def content(source: str, *, all_below: bool = False) -> str:
        """The hash of a file, or of a folder with what is in it."""
        path = Path(source)
        inside = path.rglob("*") if all_below else path.glob("*")
        return file_fingerprint(sorted(file for file in inside if file.is_file()) if path.is_dir() else [path])

    hashes: dict[str, str | tuple[str, ...]] = {}
    if dataset is not None:
        hashes["dataset"] = dataset.fingerprint
    for key, value in vars(recipe.inputs).items():
        if key in NAMED_INPUTS and value:
            sources = [parse_named_input(entry, key)[1] for entry in value]  # empty for a model's name
            hashes[key] = tuple(content(each, all_below=True) if Path(each).exists() else "" for each in sources)
        elif key == "qrels" and value:
            hashes[key] = file_fingerprint(relevance_files(value))
        elif key in _VECTORS and value:
            hashes[key] = file_fingerprint(vector_files(value, _VECTORS[key]))
        elif value:
            hashes[key] = tuple(map(content, value)) if isinstance(value, tuple) else content(value)
    if recipe.plugins:
        hashes["plugins"] = tuple(map(content, recipe.plugins))
    files = {SIMILARITIES.canonical(parse_named_input(entry, "phi")[0]) for entry in recipe.inputs.phi}
    names = [name for name in _named_by_metrics(recipe, "φ") if name not in files]
    # With another revision of a φ that is not a file, the values change.
    revisions = tuple(f"{name}={load_similarity(name).revision}" for name in names)
    return {**hashes, "similarities": revisions} if revisions else hashes


def read_both(
    dataset: Dataset | None, images: str | None, captions: str | None, image_ids: str | None = None,
    caption_ids: str | None = None,
) -> tuple[Embeddings | None, Embeddings | None]:  # fmt: skip
    """The vectors of both sides; a file without ids has a row for each of the dataset's, or the error says why not."""
    files: dict[Side, str | None] = {"image": images, "caption": captions}
    id_files = {"image": image_ids, "caption": caption_ids}
    ids = {"image": None, "caption": None} if dataset is None else {
        "image": dataset.image_ids, "caption": dataset.caption_ids
    }  # fmt: skip

    def read_sides() -> dict[Side, StoredVectors | Embeddings | None]:
        return {side: None if file is None else _read_side(file, side) for side, file in files.items()}

    # One command writes both sides: those of two models do not go together.
    paths = [Path(file) for file in (images, captions) if file is not None]
    parts = read_whole(*paths, read=read_sides) if len(paths) == 2 else read_sides()
    counts = {
        side: stored.vectors.shape[0]
        for side, stored in parts.items()
        if isinstance(stored, StoredVectors) and stored.ids is None and id_files[side] is None and stored.vectors.shape
    }
    sides: tuple[tuple[Side, Side], ...] = (("image", "caption"), ("caption", "image"))
    for side, other in sides:
        if dataset is not None and side in counts:
            with reading(str(files[side])):
                check_row_count(side, counts[side], dataset, counts.get(other))
    of_images, of_captions = (_with_ids(parts[side], files[side], id_files[side], ids[side], side) for side in files)
    return of_images, of_captions


def read_embeddings(path: str | None, id_file: str | None, dataset_ids: Ids | None, side: Side) -> Embeddings | None:
    """Vectors with ids: those in the folder or the file, those in the id file, or those of the dataset in its order."""
    return None if path is None else _with_ids(_read_side(path, side), path, id_file, dataset_ids, side)


def _read_side(path: str, side: Side) -> StoredVectors | Embeddings:
    with reading(path):
        return read_vectors_and_ids(path, side)


def _with_ids(
    stored: StoredVectors | Embeddings | None, path: str | None, id_file: str | None, all_ids: Ids | None, side: Side
) -> Embeddings | None:
    if stored is None or path is None:
        return None
    if isinstance(stored, Embeddings):
        if id_file is not None:
            raise UsageError(f"{path} holds its own ids", fix=f"leave out the file of {side} ids")
        with reading(path):
            _require_all(stored.ids, all_ids, side, any_ending=stored.has_names)
        return stored
    if stored.ids is not None and id_file is None:
        with reading(path):
            _require_all(stored.ids, all_ids, side)
            return Embeddings(stored.ids, stored.vectors)
    ids = all_ids if id_file is None else _read_ids(id_file, all_ids, side, (stored.vectors.shape or (0,))[0])
    if ids is None:
        raise UsageError(
            f"the {side} ids of the rows of {path} are unknown",
            fix=f"name the dataset (rows in its order), or a file of {side} ids with one per line",
        )
    with reading(path):
        return Embeddings(ids, stored.vectors)


def _runs(
    recipe: Recipe, dataset: Dataset | None, relevance: Relevance | Mapping[str, Relevance] | None
) -> dict[str, RankedLists] | None:
    """The ranked lists by direction: the one the recipe names, or the one that fits their ids."""
    directions, paths = recipe.options.directions, recipe.inputs.runs
    if not paths:
        return None
    runs: dict[str, RankedLists] = {}
    for number, path in enumerate(paths):
        with _naming_line(path):
            lists = read_run(path)
            of_file = directions[number : number + 1]
            if not of_file and dataset is None and isinstance(relevance, Mapping):
                shared = {name: match_ids(lists.query_ids, part.query_ids) >= 0 for name, part in relevance.items()}
                of_file = (max(shared, key=lambda name: int(shared[name].sum())),)  # where most queries are judged
            by_direction = lists_by_direction(dataset, lists, of_file)
            for direction, ranked in by_direction.items():
                if direction in runs:
                    raise UsageError(
                        f"two run files for {direction}",
                        fix="name the direction of each, or evaluate them one at a time and compare",
                    )
                if dataset is not None:
                    lists_over(dataset, ranked, direction, skip_unknown=recipe.options.skip_unknown)
        runs |= by_direction
    return runs


def _read_ids(path: str, dataset_ids: Ids | None, side: str, rows: int) -> Ids:
    """The ids in a file, one per line. They may be more than ``dataset_ids``, but not fewer."""
    with reading(path):
        lines = unescape_ids(line.strip() for line in read_lines(path))
        location = on_lines(range(1, len(lines) + 1))
        ids = check_ids(lines, f"{side} id", location)
        check_unique(ids, side, location)
        if len(ids) != rows:  # the dataset may tell which id is missing or too many
            missing, extra = sorted(set(dataset_ids or ()) - set(ids)), sorted(set(ids) - set(dataset_ids or ()))
            fix = f"write the file that lists the {side}s in the order in which they were encoded"
            if rows == len(ids) + 1 == len(dataset_ids or ()) and len(missing) == 1:
                fix = f"add the missing id, probably {missing[0]!r}"
            elif rows == len(ids) - 1 == len(dataset_ids or ()) and len(extra) == 1:
                fix = f"remove {extra[0]!r}, which is no {side} of the dataset"
            problem = f"{len(ids):,} {side} ids for {rows:,} rows of embeddings"
            raise InputError(problem, expected="one id per row, in the order of the rows", fix=fix)
        if dataset_ids is not None and (match_ids(dataset_ids, ids) < 0).any():
            check_known(ids, dataset_ids, side, location)
            _require_all(ids, dataset_ids, side)
        return tuple(ids)


def _require_all(ids: Sequence[str], dataset_ids: Ids | None, side: str, *, any_ending: bool = True) -> None:
    """Every item of the dataset must be among the ids."""
    rows = match_ids(dataset_ids or (), ids, any_ending=any_ending)
    missing = [item for item, row in zip(dataset_ids or (), rows, strict=True) if row < 0]
    if missing:
        raise InputError(
            f"no vector for {side} {missing[0]!r}" + (f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""),
            expected=f"a vector for each of the {len(dataset_ids or ()):,} {side}s of the dataset",
            fix="encode what is missing, or evaluate on the images that have one",
        )


@contextmanager
def _naming_line(path: str) -> Iterator[None]:
    """Name the file in an error raised inside, and the line on which an unknown id first occurs in it."""
    try:
        with reading(path):
            yield
    except InputError as error:
        if error.code == "unknown-id" and error.subject is not None and path not in JUDGEMENT_SETS:
            # The line on which the id first occurs as a word; none in files that are one line.
            word = re.compile(rf"(?<![^\s\"\[{{:,]){re.escape(error.subject)}(?![^\s\"\]}}:,])")
            lines = read_lines(path)
            number = next((number for number, line in enumerate(lines, start=1) if word.search(line)), None)
            error.row = f"line {number}" if number and len(lines) > 1 else None
        raise


def evaluated_as_known(
    dataset: str | None,
    inputs: InputOptions,
    options: EvaluateOptions,
    notify: Callable[[str], None] = lambda text: None,
) -> tuple[InputOptions, EvaluateOptions]:
    """Inputs and options with what the name of the dataset implies, unless they say something else themselves."""
    if dataset is None or not is_known(dataset):
        return inputs, options
    entry = known_dataset(dataset)
    implied = []
    if entry.relevance is not None and inputs.qrels is None:
        inputs = replace(inputs, qrels=entry.relevance)
        implied.append(f"the judgements {entry.relevance}")
    if entry.folds > 1 and options.folds == 1:
        options = replace(options, folds=entry.folds)
        implied.append(f"{entry.folds} folds")
    if implied:
        notify(f"note: {entry.name} is {entry.called} with {' and '.join(implied)}")
    return inputs, options
