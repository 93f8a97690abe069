"""What the graded metrics of a recipe name: similarities of one's own, and relevance encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from crosslens.core.dataset import Dataset
from crosslens.core.embeddings import Embeddings
from crosslens.core.errors import CrosslensError, InputError, UsageError, reading
from crosslens.core.fingerprint import file_fingerprint
from crosslens.core.progress import Progress
from crosslens.core.run import RECIPE_FILE, RUN_FILE
from crosslens.data.files import existing_file, read_array
from crosslens.metrics import family_of, parse_metrics
from crosslens.metrics.gain import OWN
from crosslens.pipeline.recipe.model import Encoding, make
from crosslens.pipeline.recipe.recipe import Recipe
from crosslens.pipeline.recipe.values import Model, entries_of, entry_of
from crosslens.similarity import load_similarity

_FILES = (".npy", ".csv")


def asked(metrics: Sequence[str], option: str) -> list[str]:
    """The names that the metrics of a recipe give for an option."""
    specs = [one.spec for one in parse_metrics(metrics)] if metrics else []
    found = (family_of(spec).value_of(spec, option) for spec in specs if family_of(spec).graded)
    return list(dict.fromkeys(one for one in found if one is not None))


def given_phi(recipe: Recipe) -> dict[str, Path]:
    """The similarities that come from files, by name."""
    given = entries_of(recipe.inputs.phi, "phi")
    names = asked(recipe.options.metrics, "φ")
    _refuse_idle(given, names, "phi", "NCS[{name}]@10")
    for name in names:
        if name not in given and Path(name).suffix.lower() in _FILES:
            raise UsageError(
                f"{name} is a file, and a metric's name should say what is in it",
                fix=f"write NCS[mine]@10, say, and pass --phi mine={name} (phi in a recipe's [inputs])",
            )
    for name, source in given.items():
        if Path(source).suffix.lower() not in _FILES:
            raise UsageError(
                f"--phi {name}={source} is no matrix", fix=f"name a file that ends in {' or '.join(_FILES)}"
            )
    return {name: existing_file(source) for name, source in given.items()}


def similarity_prints(recipe: Recipe) -> tuple[str, ...]:
    """The revision of every φ that is not a file: another one, other numbers."""
    given = {entry_of(one, "phi")[0] for one in recipe.inputs.phi}
    names = [name for name in asked(recipe.options.metrics, "φ") if name not in given]
    return tuple(f"{name}={load_similarity(name).revision}" for name in names)


def given_encoders(
    recipe: Recipe,
    dataset: Dataset | None,
    how: Encoding,
    progress: Progress | None,
    load: Callable[[Recipe, Encoding, Progress | None], Any],
) -> dict[str, Any]:
    """The scores of the relevance encoders that the metrics name; ``load`` reads the inputs of another run."""
    given = entries_of(recipe.inputs.scores_from, "scores_from")
    names = [one for one in asked(recipe.options.metrics, "scores_from") if one != OWN]
    _refuse_idle(given, names, "scores-from", "DCGcm[scores_from={name}]@10")
    if names and dataset is None:
        raise UsageError("a relevance encoder and nothing to encode", fix="pass --dataset")
    found: dict[str, Any] = {}
    for name in names:
        source = given.get(name, name)
        place = Path(source)
        if place.suffix.lower() == ".npy":
            found[name] = read_array(existing_file(place))
        elif (place / RUN_FILE).exists():
            found[name] = _of_run(place, dataset, how, progress, load)
        elif place.is_dir():
            found[name] = _of_folder(place)
        else:
            found[name] = _encoded(name, source, recipe.model, dataset, how, progress)
    return found


def source_print(source: str) -> str:
    """The content of what an entry names: a file, a folder with all that is in it; nothing for a model's name."""
    place = Path(source)
    files = sorted(one for one in place.rglob("*") if one.is_file()) if place.is_dir() else [place]
    return file_fingerprint(files) if place.exists() else ""


def _refuse_idle(given: Iterable[str], names: Sequence[str], flag: str, example: str) -> None:
    for name in given:
        if name not in names:
            raise UsageError(
                f"--{flag} {name}=… is not used by any metric",
                fix=f'ask for one: --metrics "{example.format(name=name)}"',
            )


def _of_run(
    folder: Path, dataset: Dataset | None, how: Encoding, progress: Progress | None, load: Callable[..., Any]
) -> Any:
    """The vectors or scores that a stored run was computed from."""
    recipe = Recipe.read(existing_file(folder / RECIPE_FILE)).absolute()
    try:
        loaded = load(recipe, how, progress)
    except CrosslensError as error:
        raise InputError(
            f"the inputs of this run cannot be read again: {error.problem}",
            file=folder,
            fix="name its embeddings or its score matrix instead",
        ) from error
    if loaded.images is not None and loaded.captions is not None:
        return loaded.images, loaded.captions
    same = dataset is not None and loaded.dataset is not None and (
        (loaded.dataset.image_ids, loaded.dataset.caption_ids) == (dataset.image_ids, dataset.caption_ids)
    )  # fmt: skip
    if loaded.scores is None or not same:
        raise InputError(
            "a run of ready-made lists, which do not score every pair" if loaded.scores is None else
            "a run over other images or captions",
            file=folder,
            expected="a run from embeddings, from a model, or from a score matrix of the same dataset",
            fix="name such a run, or a score matrix (.npy, images × captions)",
        )  # fmt: skip
    return loaded.scores


def _of_folder(folder: Path) -> tuple[Embeddings, Embeddings]:
    """What ``crosslens encode`` wrote."""
    with reading(folder):
        if not ((folder / "images").is_dir() and (folder / "captions").is_dir()):
            raise InputError(
                "neither a run nor embeddings of both images and captions",
                expected="a run folder, or the folders images and captions in it, as crosslens encode writes them",
            )
    return Embeddings.load(folder / "images", mmap=True), Embeddings.load(folder / "captions", mmap=True)


def _encoded(
    name: str, source: str, model: Model, dataset: Dataset | None, how: Encoding, progress: Progress | None
) -> tuple[Embeddings, Embeddings]:
    if ":" not in source:
        raise UsageError(
            f"nothing says whose scores {name!r} are",
            fix=f"pass --scores-from {name}=… with a run folder, a .npy of scores, a folder that encode wrote, "
            "or an encoder such as clip:openai/clip-vit-base-patch32",
        )
    made = make(Model(source, model.image_folder, precision=model.precision), dataset, how, progress)
    return made.images, made.captions
