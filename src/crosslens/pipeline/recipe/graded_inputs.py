"""What the graded metrics of a recipe name: similarities of one's own, and relevance encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from crosslens.core import (
    RECIPE_FILE,
    RUN_FILE,
    CrosslensError,
    Dataset,
    Embeddings,
    InputError,
    Progress,
    UntrustedCodeError,
    UsageError,
    argument,
    code_named_by,
    file_fingerprint,
    read_manifest,
    read_whole,
    reading,
)
from crosslens.data import ARRAY_SUFFIXES, SIDE_FOLDERS, existing_file, read_vectors
from crosslens.encode import EncodeOptions
from crosslens.metrics import OWN_SCORES, option_values, parse_metrics
from crosslens.pipeline.encoding import LoadedInputs, encode_with_model
from crosslens.pipeline.inputs import read_scores
from crosslens.pipeline.recipe.options import ModelOptions, parse_named_input, parse_named_inputs
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.similarity import load_similarity

Load = Callable[[Recipe, EncodeOptions, Progress | None], LoadedInputs]

_MATRIX_SUFFIXES = (*ARRAY_SUFFIXES, ".csv")


def similarity_files(recipe: Recipe) -> dict[str, Path]:
    """The similarities that come from files, by name."""
    sources = parse_named_inputs(recipe.inputs.phi, "phi")
    names = _named_by_metrics(recipe, "φ")
    _refuse_unused(sources, names, "phi", "NCS[{name}]@10")
    for name in names:
        if name not in sources and Path(name).suffix.lower() in _MATRIX_SUFFIXES:
            raise UsageError(
                f"{name} is a file; a metric takes the name of a similarity",
                fix=f"write NCS[mine]@10, say, and pass {argument('phi', f'mine={name}')} (phi in a recipe's [inputs])",
            )
    for name, source in sources.items():
        if Path(source).suffix.lower() not in _MATRIX_SUFFIXES:
            raise UsageError(
                f"{argument('phi', f'{name}={source}')} is not a matrix",
                fix=f"name a file that ends in {', '.join(_MATRIX_SUFFIXES[:-1])} or {_MATRIX_SUFFIXES[-1]}",
            )
    return {name: existing_file(source) for name, source in sources.items()}


def similarity_revisions(recipe: Recipe) -> tuple[str, ...]:
    """The revision of every φ that is not a file: with another revision the values change."""
    files = {parse_named_input(entry, "phi")[0] for entry in recipe.inputs.phi}
    names = [name for name in _named_by_metrics(recipe, "φ") if name not in files]
    return tuple(f"{name}={load_similarity(name).revision}" for name in names)


def relevance_encoders(
    recipe: Recipe,
    dataset: Dataset | None,
    options: EncodeOptions,
    progress: Progress | None,
    load: Load,
) -> dict[str, Any]:
    """The scores of the relevance encoders that the metrics name; ``load`` reads the inputs of another run."""
    sources = parse_named_inputs(recipe.inputs.scores_from, "scores_from")
    names = [name for name in _named_by_metrics(recipe, "scores_from") if name != OWN_SCORES]
    _refuse_unused(sources, names, "scores_from", "DCGcm[scores_from={name}]@10")
    encoders: dict[str, Any] = {}
    for name in names:
        if dataset is None:
            raise UsageError(f"{argument('scores_from')} requires a dataset", fix=f"pass {argument('dataset')}")
        source = sources.get(name, name)
        path = Path(source)
        if path.suffix.lower() in ARRAY_SUFFIXES:
            encoders[name] = read_scores(dataset, path)
        elif (path / RUN_FILE).exists():
            encoders[name] = _from_run(path, dataset, options, progress, load)
        elif path.is_dir():
            encoders[name] = _from_embeddings(path)
        else:
            encoders[name] = _from_model(name, source, recipe.model, dataset, options, progress)
    return encoders


def source_fingerprint(source: str) -> str:
    """The content hash of a file, or of a folder with all that is in it; empty for a model's name."""
    path = Path(source)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return file_fingerprint(files) if path.exists() else ""


def _named_by_metrics(recipe: Recipe, option: str) -> list[str]:
    """The names that the metrics of a recipe give for an option."""
    return option_values(parse_metrics(recipe.options.metrics), option) if recipe.options.metrics else []


def _refuse_unused(sources: Iterable[str], names: Sequence[str], key: str, example: str) -> None:
    for name in sources:
        if name not in names:
            raise UsageError(
                f"{argument(key, f'{name}=…')} is not used by any metric",
                fix=f"add a metric that uses it: {example.format(name=name)}",
            )


def _from_run(
    folder: Path, dataset: Dataset | None, options: EncodeOptions, progress: Progress | None, load: Load
) -> Any:
    """The vectors or scores that a stored run was computed from."""
    loaded = inputs_of_run(folder, options, progress, load)[1]
    if loaded.images is not None and loaded.captions is not None:
        return loaded.images, loaded.captions
    same = dataset is not None and loaded.dataset is not None and (
        (loaded.dataset.image_ids, loaded.dataset.caption_ids) == (dataset.image_ids, dataset.caption_ids)
    )  # fmt: skip
    if loaded.scores is None or not same:
        raise InputError(
            "a run of ranked lists, which do not score every pair" if loaded.scores is None else
            "a run over other images or captions",
            file=folder,
            expected="a run from embeddings, from a model, or from a score matrix of the same dataset",
            fix="name such a run, or a score matrix (.npy, images × captions)",
        )  # fmt: skip
    return loaded.scores


def inputs_of_run(
    folder: Path, options: EncodeOptions, progress: Progress | None, load: Load
) -> tuple[Recipe, LoadedInputs]:
    """The recipe of a stored run, and what it names, read by ``load``."""
    file = folder / RECIPE_FILE

    def read() -> Recipe:
        read_manifest(folder / RUN_FILE, "run")[1].check_folder((RECIPE_FILE,))
        return Recipe.read(existing_file(file))

    try:
        with code_named_by(file):  # whoever made that run chose what it names
            recipe = read_whole(folder, folder / RUN_FILE, read=read)
            return recipe, load(recipe.absolute(), options, progress)
    except CrosslensError as error:
        if isinstance(error, UntrustedCodeError) or error.code == "changed-file":
            raise
        raise InputError(
            f"the inputs of this run cannot be read again: {error.problem}",
            file=folder,
            fix="name its embeddings or its score matrix instead",
        ) from error


def _from_embeddings(folder: Path) -> tuple[Any, Any]:
    """What ``crosslens encode`` or clip-retrieval wrote."""
    return read_whole(folder, read=lambda: _both_sides(folder))


def _both_sides(folder: Path) -> tuple[Any, Any]:
    if all((folder / name).is_dir() for name in SIDE_FOLDERS.values()):
        return read_vectors(folder, "image"), read_vectors(folder, "caption")
    with reading(folder):
        if not ((folder / "images").is_dir() and (folder / "captions").is_dir()):
            raise InputError(
                "neither a run nor embeddings of both images and captions",
                expected="a run folder, or the folders images and captions in it, as crosslens encode writes them",
            )
    return Embeddings.load(folder / "images", mmap=True), Embeddings.load(folder / "captions", mmap=True)


def _from_model(
    name: str, source: str, model: ModelOptions, dataset: Dataset | None, options: EncodeOptions,
    progress: Progress | None,
) -> tuple[Embeddings | None, Embeddings | None]:  # fmt: skip
    if ":" not in source:
        raise UsageError(
            f"scores_from={name} is not defined",
            fix=f"pass {argument('scores_from', f'{name}=…')} with a run folder, a .npy of scores, a folder that "
            "encode wrote, or an encoder such as clip:openai/clip-vit-base-patch32",
            subject=name,
        )
    encoder = ModelOptions(source, model.image_folder, precision=model.precision)
    encoded = encode_with_model(encoder, dataset, encoder.encode_options(options), progress)
    return encoded.images, encoded.captions
