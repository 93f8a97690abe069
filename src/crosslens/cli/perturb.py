"""``crosslens perturb``: captions or pictures, changed on purpose."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, note, progress, say, say_json, width
from crosslens.cli.dataset_flags import Captions, Data, Images, Instances, Split, reader_options
from crosslens.cli.model_flags import ImageFolder

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.report.caption_changes import Changes

EXAMPLES = examples(
    "crosslens perturb --dataset captions.jsonl --name char_swap --show 5",
    "crosslens perturb --dataset captions.jsonl --name all -o perturbed/ --html perturbed.html",
    "crosslens perturb --dataset captions.jsonl --name synonym_noun,missing_char --option k=2 -o two/",
    "crosslens perturb --dataset scenes/ --name blur,noise --sheet severities.png",
    "crosslens perturb --dataset scenes/ --name blur@3,noise@5 -o blurred/",
    "crosslens perturb --list",
)
_SHOWN = 3
_ON_PAGE = 100


def perturb(
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="A reader's name, or a dataset's path.")
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Perturbations or groups (see --list), separated by commas; blur@3 and such."
        ),
    ] = "all",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Gets one dataset per perturbation.")
    ] = None,
    captions: Captions = None,
    instances: Instances = None,
    images: Images = None,
    split: Split = None,
    data: Data = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same captions.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An option of the perturbations, such as k=2; goes to all that know it."
        ),
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="The spaCy pipeline that tags. [default: the first installed]")
    ] = None,
    image_folder: ImageFolder = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="For pictures: leave out those that cannot be read.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes or threads. [default: all cores]")
    ] = None,
    show: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"Print N changed captions of each. [default: {_SHOWN} without -o]"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=f"A page with the first {_ON_PAGE} captions (or --show N) and their changes."
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For pictures: draw the first three at every severity, to look at."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what stands there.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Print the perturbations, and nothing else.")] = False,
    json: Json = False,
) -> None:
    """Change captions or pictures a little, on purpose.

    Every perturbation becomes a dataset of its own, with the same ids, that every other command reads. A caption's
    change depends on the seed and its id alone. Run the same command again to go on where it was stopped.
    """
    from crosslens.core.errors import ConflictError, UsageError
    from crosslens.data import load_dataset
    from crosslens.perturb.choice import chosen_perturbations, is_image_perturbation
    from crosslens.report.perturbation_list import perturbations_as_dict, perturbations_text

    if listing:
        if json:
            say_json(perturbations_as_dict())
        else:
            say(perturbations_text(width()))
        return
    if dataset is None:
        raise UsageError("no --dataset", fix="see crosslens perturb --help")
    chosen = chosen_perturbations(name)
    pictures = [one for one in chosen if is_image_perturbation(one)]
    if sheet is not None:
        from crosslens.perturb.images.sheet import check_sheet

        if not pictures:
            raise UsageError(f"{chosen[0]} changes captions: no picture for a sheet", fix="name blur, or leave it out")
        check_sheet(sheet, overwrite=overwrite)
    elif pictures and output is None:
        raise UsageError(f"{pictures[0]} changes pictures, which need a place", fix="pass -o FOLDER")
    if html is not None and html.exists() and not overwrite:
        raise ConflictError(f"{html} already exists", fix="choose another name, or pass --overwrite")
    texts = [one for one in chosen if one not in pictures]
    options = perturbation_options(option or [], texts)
    reader = reader_options(dataset, data, captions=captions, instances=instances, images=images, split=split)
    loaded = load_dataset(dataset, **reader)
    common: dict[str, Any] = {"seed": seed, "pipeline": pipeline, "threads": threads, "progress": progress()}
    if show is None:
        show = _SHOWN if output is None and html is None and texts else 0
    most = max(show, (show or _ON_PAGE) if html is not None else 0)
    if output is None:
        facts, seen = _in_memory(loaded, texts, most, {**common, **options})
    else:
        common |= {"image_folder": image_folder, "skip_bad": skip_bad, "overwrite": overwrite}
        facts, seen = _written(loaded, chosen, output, most, {**common, **options})
    if html is not None:
        _write_page(seen, html, f"{loaded.name}: captions changed on purpose", show or _ON_PAGE)
    if sheet is not None:
        from crosslens.perturb.images.sheet import write_sheet

        write_sheet(loaded, pictures, sheet, seed=seed, image_folder=image_folder, overwrite=overwrite)
    if json:
        _say_json(facts, seen, show, [one for one in (output, html, sheet) if one is not None])
    else:
        _say(facts, seen, show, output, html)
        if sheet is not None:
            note(f"every severity to look at: {sheet}")


def _in_memory(
    dataset: Dataset, names: Sequence[str], most: int, options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Changes]]:
    from crosslens.perturb.perturbing import perturb_each
    from crosslens.perturb.writing import counts

    facts, seen = {}, []
    for name, results in perturb_each(names, dataset, **options):
        facts[name] = counts(results)
        seen.append(_changes(name, dataset, results, facts[name], most))
    return facts, seen


def _written(
    dataset: Dataset, names: Sequence[str], output: Path, most: int, options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Changes]]:
    from crosslens.core.dataset import Dataset
    from crosslens.perturb.writing import read_perturbed, write_perturbations

    facts = write_perturbations(dataset, names, output, **options)
    seen = []
    for name, fact in facts.items():
        if most and fact["kind"] != "image":
            results = read_perturbed(Dataset.load(output / name))
            seen.append(_changes(name, dataset, results, fact, most))
    return facts, seen


def _changes(name: str, dataset: Dataset, results: Sequence[Any], counts: Mapping[str, Any], most: int) -> Changes:
    """The first captions, and as many changed ones as are to be shown."""
    from crosslens.perturb.perturbation import PERTURBATIONS
    from crosslens.report.caption_changes import Changes
    from crosslens.report.perturbation_list import plain_summary

    changed = [row for row, one in enumerate(results) if one.applied][:most]
    rows = sorted({*changed, *range(min(most, len(results)))})
    captions = {dataset.caption_ids[row]: results[row] for row in rows}
    return Changes(name, plain_summary(PERTURBATIONS[name]), captions, counts)


def perturbation_options(pairs: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """``k=2`` as the type that the perturbations declare; what is no option of any is left for them to refuse."""
    from crosslens.cli.dataset_flags import typed
    from crosslens.core.errors import UsageError
    from crosslens.perturb.perturbation import PERTURBATIONS
    from crosslens.perturb.perturbing import options_of

    known: dict[str, inspect.Parameter] = {}
    for name in names:
        known |= options_of(PERTURBATIONS[name])
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key):
            raise UsageError(f"--option {pair!r} is not KEY=VALUE", fix="write, for example, --option k=2")
        key = key.replace("-", "_")
        if key in found:
            raise UsageError(f"the option {key!r} is given twice", fix="drop one of the two")
        found[key] = typed(f"the option {key}", value, known.get(key))
    return found


def _write_page(seen: Sequence[Changes], file: Path, title: str, most: int) -> None:
    from crosslens.core.atomic import write_text
    from crosslens.report.caption_changes import changes_page

    write_text(file, changes_page([one.first(most) for one in seen], title))


def _say(facts: Mapping[str, Any], seen: Sequence[Changes], show: int, output: Path | None, html: Path | None) -> None:
    from crosslens.report.caption_changes import changes_text, counts_grid

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if show:
        say("\n\n".join(changes_text(one.changed_first(show), width(), colour=colour) for one in seen))
    elif facts:
        say(counts_grid(facts).text(width()))
    if output is not None:
        note(
            f"\n{len(facts)} datasets in {output}, one folder each; {output / 'perturbations.json'} says what they are"
        )
    if html is not None:
        note(f"the changes to look at: {html}")


def _say_json(facts: Mapping[str, Any], seen: Sequence[Changes], show: int, written: Sequence[Path]) -> None:
    shown = {one.name: one.changed_first(show).as_dict() for one in seen} if show else {}
    say_json({"perturbations": facts, **({"shown": shown} if shown else {}), "written": list(map(str, written))})
