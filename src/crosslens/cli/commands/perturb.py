"""``crosslens perturb``: captions or pictures with small changes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from crosslens.cli.console import (
    check_outputs,
    print_json,
    print_note,
    print_result,
    progress_bar,
    terminal_width,
    use_colour,
)
from crosslens.cli.datasets import DatasetOptions, key_values, typed
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, Threads, command
from crosslens.core import option
from crosslens.encode import EncodeOptions

if TYPE_CHECKING:
    from crosslens.core import Dataset
    from crosslens.report import CaptionChanges

_SHOWN = 3
_PAGE_CAPTIONS = 100


@command(
    "crosslens perturb --dataset captions.jsonl --name char_swap --show 5",
    "crosslens perturb --dataset captions.jsonl --name all -o perturbed/ \\",
    "    --html perturbed.html",
    "crosslens perturb --dataset captions.jsonl --name synonym_noun,char_swap \\",
    "    --option k=2 -o two/",
    "crosslens perturb --dataset scenes/ --name blur,noise --sheet severities.png",
    "crosslens perturb --dataset scenes/ --name blur@3,noise@5 -o blurred/",
    "crosslens perturb --list",
)
def perturb(
    source: DatasetOptions,
    encode: Annotated[
        EncodeOptions,
        Flags(
            only=("image_folder", "skip_bad"),
            help={"skip_bad": "For pictures: leave out those that cannot be read."},
        ),
    ],
    name: str = option(
        "all", "Perturbations or groups (see --list), separated by commas; blur@3 and such.", metavar="NAMES"
    ),
    output: Path | None = option(None, "Gets one dataset per perturbation.", metavar="FOLDER", flags=OUTPUT),
    seed: int = option(0, "The same seed gives the same captions.", metavar="N"),
    option: list[str] | None = option(
        None, "An option of the perturbations, such as k=2; goes to all that know it.", metavar="KEY=VALUE"
    ),
    pipeline: str | None = option(None, "The spaCy pipeline that tags. [default: the first installed]", metavar="NAME"),
    threads: Threads = None,
    show: int | None = option(
        None, f"Print N changed captions of each. [default: {_SHOWN} without -o]", metavar="N", minimum=0
    ),
    html: Path | None = option(
        None, f"A page with the first {_PAGE_CAPTIONS} captions (or --show N) and their changes.", metavar="FILE"
    ),
    sheet: Path | None = option(
        None, "For pictures: draw the first three at every severity, to look at.", metavar="FILE"
    ),
    overwrite: Overwrite = False,
    listing: bool = option(False, "Print the perturbations, and nothing else.", flags=("--list",)),
    json: Json = False,
) -> None:
    """Perturb captions or pictures: small changes.

    Every perturbation becomes a dataset of its own, with the same ids, that every other command reads. A caption's
    change depends on the seed and its id alone. Running the same command again resumes where it was interrupted.
    """
    from crosslens.core import UsageError
    from crosslens.perturbations import chosen_perturbations, is_image_perturbation
    from crosslens.report import perturbations_as_dict, perturbations_text

    if listing:
        if json:
            print_json(perturbations_as_dict())
        else:
            print_result(perturbations_text(terminal_width()))
        return
    if source.dataset is None:
        raise UsageError("missing option --dataset", fix="see crosslens perturb --help")
    chosen = chosen_perturbations(name)
    pictures = [perturbation for perturbation in chosen if is_image_perturbation(perturbation)]
    if sheet is not None:
        from crosslens.perturbations import check_sheet

        if not pictures:
            raise UsageError(
                f"--sheet requires a perturbation of pictures; {chosen[0]} changes captions",
                fix="pass --name blur, or drop --sheet",
            )
        check_sheet(sheet, overwrite=overwrite)
    elif pictures and output is None:
        raise UsageError("missing option -o/--output", fix=f"{pictures[0]} changes pictures: pass -o FOLDER")
    check_outputs(html, overwrite=overwrite)
    texts = [perturbation for perturbation in chosen if perturbation not in pictures]
    options = perturbation_options(option or [], texts)
    dataset = source.load()
    common: dict[str, Any] = {"seed": seed, "pipeline": pipeline, "threads": threads, "progress": progress_bar()}
    if show is None:
        show = _SHOWN if output is None and html is None and texts else 0
    most = max(show, (show or _PAGE_CAPTIONS) if html is not None else 0)
    if output is None:
        counts, changes = _in_memory(dataset, texts, most, {**common, **options})
    else:
        common |= {"image_folder": encode.image_folder, "skip_bad": encode.skip_bad, "overwrite": overwrite}
        counts, changes = _written(dataset, chosen, output, most, {**common, **options})
    if html is not None:
        _write_page(changes, html, f"{dataset.name}: perturbed captions", show or _PAGE_CAPTIONS)
    if sheet is not None:
        from crosslens.perturbations import write_sheet

        write_sheet(dataset, pictures, sheet, seed=seed, image_folder=encode.image_folder, overwrite=overwrite)
    if json:
        _print_json(counts, changes, show, [path for path in (output, html, sheet) if path is not None])
    else:
        _print_text(counts, changes, show, output, html)
        if sheet is not None:
            print_note(f"every severity: {sheet}")


def _in_memory(
    dataset: Dataset, names: Sequence[str], most: int, options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[CaptionChanges]]:
    from crosslens.perturbations import applied_counts, perturb_each

    facts, changes = {}, []
    for name, results in perturb_each(names, dataset, **options):
        facts[name] = applied_counts(results)
        changes.append(_changes(name, dataset, results, facts[name], most))
    return facts, changes


def _written(
    dataset: Dataset, names: Sequence[str], output: Path, most: int, options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[CaptionChanges]]:
    from crosslens.core import Dataset
    from crosslens.perturbations import read_perturbed, write_perturbations

    facts = write_perturbations(dataset, names, output, **options)
    changes = []
    for name, fact in facts.items():
        if most and fact["kind"] != "image":
            results = read_perturbed(Dataset.load(output / name))
            changes.append(_changes(name, dataset, results, fact, most))
    return facts, changes


def _changes(
    name: str, dataset: Dataset, results: Sequence[Any], counts: Mapping[str, Any], most: int
) -> CaptionChanges:
    """The first captions, and as many changed ones as are to be shown."""
    from crosslens.perturbations import PERTURBATIONS
    from crosslens.report import CaptionChanges, plain_summary

    changed = [row for row, result in enumerate(results) if result.applied][:most]
    rows = sorted({*changed, *range(min(most, len(results)))})
    captions = {dataset.caption_ids[row]: results[row] for row in rows}
    return CaptionChanges(name, plain_summary(PERTURBATIONS[name]), captions, counts)


def perturbation_options(pairs: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """``k=2`` as the type that the perturbations declare; an unknown option is left for them to refuse."""
    from crosslens.perturbations import PERTURBATIONS, options_of

    known: dict[str, inspect.Parameter] = {}
    for name in names:
        known |= options_of(PERTURBATIONS[name])
    values = key_values("--option", [_with_underscores(pair) for pair in pairs], "k=2")
    return {key: typed(f"the option {key}", value, known.get(key)) for key, value in values.items()}


def _with_underscores(pair: str) -> str:
    key, equals, value = pair.partition("=")
    return f"{key.replace('-', '_')}{equals}{value}"


def _write_page(changes: Sequence[CaptionChanges], file: Path, title: str, most: int) -> None:
    from crosslens.core import write_text
    from crosslens.report import changes_page

    write_text(file, changes_page([perturbation.first(most) for perturbation in changes], title))


def _print_text(
    counts: Mapping[str, Any], changes: Sequence[CaptionChanges], show: int, output: Path | None, html: Path | None
) -> None:
    from crosslens.report import changes_text, counts_grid

    if show:
        texts = (changes_text(part.changed_first(show), terminal_width(), colour=use_colour()) for part in changes)
        print_result("\n\n".join(texts))
    elif counts:
        print_result(counts_grid(counts).text(terminal_width()))
    if output is not None:
        listing = output / "perturbations.json"
        print_note(f"\n{len(counts)} datasets in {output}, one folder each; {listing} describes them")
    if html is not None:
        print_note(f"the changes: {html}")


def _print_json(
    counts: Mapping[str, Any], changes: Sequence[CaptionChanges], show: int, written: Sequence[Path]
) -> None:
    shown = {part.name: part.changed_first(show).as_dict() for part in changes} if show else {}
    print_json({"perturbations": counts, **({"shown": shown} if shown else {}), "written": list(map(str, written))})
