"""``crosslens metrics``: what can be asked for, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosslens.cli.console import Json, examples, say, say_json, say_list

if TYPE_CHECKING:
    from crosslens.metrics.family import Family

EXAMPLES = examples("crosslens metrics", "crosslens metrics CappedRecall", "crosslens metrics --json")


def metrics(
    name: Annotated[str | None, typer.Argument(help="Tell all about this one.")] = None,
    json: Json = False,
) -> None:
    """List the metrics with their definitions."""
    from crosslens.metrics import METRICS
    from crosslens.metrics.spec import read_spec

    if name is None:
        found = sorted((entry.value for entry in METRICS), key=lambda family: family.name.casefold())
    else:
        found = [METRICS[read_spec(name).family].value]
    if json:
        say_json({"metrics": [_content(one) for one in found]})
    elif name is None:
        say_list([(_written(one), one.definition) for one in found])
        say("\nA name without a direction means both: Hit@5 is i2t/Hit@5 and t2i/Hit@5. R@5 is read as Hit@5.")
    else:
        say(_written(found[0]))
        say_list(_facts(found[0]), indent=2)


def _written(family: Family) -> str:
    return family.name + {"required": "@k", "optional": "[@k]", "none": ""}[family.cutoff]


def _content(family: Family) -> dict[str, Any]:
    return {
        "name": family.name,
        "written": _written(family),
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
