"""``crosslens check``: does a model fulfil what is required of it?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import crosslens.core as core
import crosslens.pipeline as pipeline
from crosslens.cli.answers import end_with
from crosslens.cli.console import print_result
from crosslens.cli.exit_codes import UNMET
from crosslens.cli.flags import Json, command
from crosslens.core import UsageError, option


@command(
    'crosslens check runs/x --require "t2i/Hit@1 >= 0.6" --require "MedR <= 3"',
    'crosslens check runs/x --require "worst(category, t2i/Hit@1) >= 40%"',
    "crosslens check runs/x --robustness runs/rob \\",
    '    --require "drop(char_swap, t2i/Hit@1) <= 5"',
    "crosslens check runs/new --baseline runs/old --confident \\",
    '    --require "gap(Hit@1) >= -1"',
    "crosslens check audits/x --requirements requirements.toml --github",
)
def check(
    folder: Annotated[Path, typer.Argument(help="A run folder, or the folder of a robustness study or an audit.")],
    *,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="TEXT", help='Such as "t2i/Hit@1 >= 0.6". May be repeated.'),
    ] = None,
    requirements: Path | None = option(None, "A TOML file with more: require = [TEXT, …].", metavar="FILE"),
    robustness: Path | None = option(None, "The robustness study of the run, for drop(…).", metavar="FOLDER"),
    baseline: Path | None = option(None, "The run that gap(…) compares with.", metavar="FOLDER"),
    confident: bool = option(False, "The whole interval must fulfil the requirement, not only the value."),
    smallest_group: int = option(
        1, "Groups with fewer queries do not count in worst(…).", metavar="N", minimum=1, maximum=1_000_000_000
    ),
    github: bool = option(False, "Print an annotation of a GitHub workflow for each requirement, too."),
    json: Json = False,
) -> pipeline.RequirementCheck:
    """Check whether a model fulfils requirements.

    A requirement compares a metric, drop(PERTURBATION[, METRIC]), group(COLUMN=VALUE, METRIC), worst(COLUMN, METRIC) or
    gap(METRIC[, RUN]) with a number by >=, <=, > or <. Shares are fractions or have a percent sign; drops and gaps are
    in points. The exit code is 7 where a requirement is not met.
    """
    if github and json:
        raise UsageError("--github does not go with --json", fix="drop one of them")
    read = [
        *map(pipeline.parse_requirement, require or ()),
        *(pipeline.read_requirements(requirements) if requirements is not None else ()),
    ]
    if not read:
        raise UsageError("no requirements", fix="pass --require or --requirements")
    models = pipeline.read_checked(folder, robustness)
    sources = pipeline.Sources(_groups, baseline, smallest_group)
    result = pipeline.check_requirements(models, read, sources, confident=confident)
    if github:
        print_result("\n".join(pipeline.github_annotations(result)))
    if not result.met:
        end_with(UNMET)
    return result


def _groups(run: core.Run, column: str, metric: str) -> Mapping[str, Mapping[str, core.MetricValues]]:
    return pipeline.group_metrics(run, column, metric).values
