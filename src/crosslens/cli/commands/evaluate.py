"""``crosslens evaluate``, ``run`` and ``metrics``: from files to a run, again from its recipe, and what is computed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import print_json, print_list, print_note, print_result, progress_bar
from crosslens.cli.datasets import DatasetOptions
from crosslens.cli.flags import OUTPUT, Flags, Json, Overwrite, command
from crosslens.cli.stored_runs import print_run, run_written_at
from crosslens.core import option
from crosslens.encode import EncodeOptions
from crosslens.pipeline import EvaluateOptions, InputOptions, ModelOptions, RerankOptions

if TYPE_CHECKING:
    from crosslens.metrics import Family


@command(
    "crosslens evaluate --dataset coco --captions captions.json \\",
    "    --image-embeddings img.npy --caption-embeddings cap.npy -o runs/clip-b32",
    "crosslens evaluate --run model.run.gz --qrels qrels.txt \\",
    '    --metrics "CappedRecall@1 CappedRecall@5" --json',
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy",
    "crosslens evaluate --dataset captions.jsonl --scores scores.npy \\",
    '    --metrics "NCS[cider]@10 SR[semantic,m=20]@5 DCGcm@10"',
    "crosslens evaluate --model clip:openai/clip-vit-base-patch32 \\",
    "    --dataset captions.jsonl --image-folder photos -o runs/clip-b32",
    "crosslens evaluate --model blip:Salesforce/blip-itm-base-coco \\",
    "    --rerank blip:Salesforce/blip-itm-base-coco --rerank-depth 128 \\",
    "    --dataset captions.jsonl --image-folder photos",
    "crosslens evaluate --model sentence:all-MiniLM-L6-v2 --image-text mean \\",
    "    --dataset captions.jsonl",
)
def evaluate(
    source: DatasetOptions,
    model: ModelOptions,
    encode: Annotated[EncodeOptions, Flags(only=("batch_size", "cache", "offline"))],
    rerank: RerankOptions,
    inputs: InputOptions,
    options: EvaluateOptions,
    name: str | None = option(None, "The name of the run. [default: the output folder's name]", metavar="TEXT"),
    output: Path | None = option(None, "Where the run is written.", metavar="FOLDER", flags=OUTPUT),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Evaluate a model, embeddings, scores or ranked lists.

    Running the same command again resumes an interrupted run, or finds it complete. A different run in the output
    folder is replaced only with --overwrite.
    """
    from crosslens.core import UsageError
    from crosslens.pipeline import Recipe, run_recipe

    if model.query_caption and model.image_text is None:
        raise UsageError("--query-caption requires --image-text", fix="pass --image-text, or drop --query-caption")
    recipe = Recipe(source.dataset, source.reader_options(), inputs, model, rerank, options, name)
    encoding = replace(encode, device=options.device, notify=print_note)
    before = run_written_at(output)
    result = run_recipe(
        recipe, output, overwrite=overwrite, progress=progress_bar(), command=sys.argv, encoding=encoding
    )
    print_run(result, json=json, output=output, before=before, name=name)


@command("crosslens run runs/clip-b32/recipe.toml", "crosslens run my-recipe.toml -o runs/again --json")
def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe.toml, written by a run or by hand; or a run folder.")],
    output: Path | None = option(None, "Where the run is written.", metavar="FOLDER", flags=OUTPUT),
    overwrite: Overwrite = False,
    allow_changed: bool = option(False, "Continue although inputs changed since the recipe was stored."),
    json: Json = False,
) -> None:
    """Repeat an evaluation from its recipe.

    The recipe of a run folder is compared with the run beside it.
    """
    from crosslens.core import RECIPE_FILE, RUN_FILE, Run
    from crosslens.pipeline import Recipe, run_recipe

    file = recipe / RECIPE_FILE if recipe.is_dir() else recipe
    before = run_written_at(output)
    result = run_recipe(
        Recipe.read(file),
        output,
        overwrite=overwrite,
        allow_changed=allow_changed,
        progress=progress_bar(),
        command=sys.argv,
    )
    print_run(result, json=json, output=output, before=before)
    if (file.parent / RUN_FILE).exists():
        same = Run.load(file.parent).fingerprint == result.fingerprint
        verdict = "every query has the same value as in" if same else "the values differ from those in"
        print_note(f"note: {verdict} {file.parent}")


@command("crosslens metrics", "crosslens metrics CappedRecall", "crosslens metrics --json")
def metrics(
    name: Annotated[str | None, typer.Argument(help="Describe this metric in full.")] = None,
    json: Json = False,
) -> None:
    """List the metrics with their definitions."""
    from crosslens.metrics import METRICS, read_spec

    if name is None:
        families = sorted((entry.value for entry in METRICS), key=lambda family: family.name.casefold())
    else:
        families = [METRICS[read_spec(name).family].value]
    if json:
        print_json({"metrics": [_content(family) for family in families]})
    elif name is None:
        print_list([(_pattern(family), family.definition) for family in families])
        print_result("\nA name without a direction means both: Hit@5 is i2t/Hit@5 and t2i/Hit@5. R@5 is read as Hit@5.")
    else:
        print_result(_pattern(families[0]))
        print_list(_facts(families[0]), indent=2)


def _pattern(family: Family) -> str:
    return family.name + {"required": "@k", "optional": "[@k]", "none": ""}[family.cutoff]


def _content(family: Family) -> dict[str, Any]:
    return {
        "name": family.name,
        "written": _pattern(family),
        "definition": family.definition,
        "source": family.source,
        "options": {option.name: option.explained for option in family.options},
        "higher_is_better": family.higher_is_better,
        "range": list(family.range),
    }


def _facts(family: Family) -> list[tuple[str, str]]:
    better = "higher is better" if family.higher_is_better else "lower is better"
    rows = [("definition", family.definition), ("source", family.source), ("read as", better)]
    rows += [(f"[{option.written}]", option.explained) for option in family.options]
    return [row for row in rows if row[1]]
