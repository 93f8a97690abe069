"""``crosslens explain`` without a query: all failures of a run, or of two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosslens.cli.console import note, progress, say, say_json, width

if TYPE_CHECKING:
    from crosslens.core.dataset import Dataset
    from crosslens.core.run import Run


def explain_all(
    run: Run,
    dataset: Dataset,
    direction: str | None = None,
    *,
    compare: Path | None = None,
    depth: int | None = None,
    show: int = 10,
    seed: int = 0,
    output: Path | None = None,
    html: Path | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Explain every failure, print the summary, and write what was asked for."""
    from crosslens.cli.stored import load_run
    from crosslens.explain.overview.comparison import compare_overviews
    from crosslens.explain.overview.folder import save_overview
    from crosslens.explain.overview.overview import overview
    from crosslens.report.overview import comparison_text, overview_text
    from crosslens.report.plots.atlas import write_atlas
    from crosslens.report.plots.paper import suffix_of

    if html is not None:
        suffix_of(html)  # a mistake in the name should not cost the wait
    found = overview(run, dataset, direction, depth=depth, seed=seed, progress=progress())
    compared = None
    if compare is not None:
        other = overview(load_run(compare), dataset, found.direction, depth=depth, seed=seed, progress=progress())
        compared = compare_overviews(found, other, depth=depth)
    content: dict[str, Any] = found.as_dict() if compared is None else compared.as_dict()
    if output is not None:
        save_overview(found, output, comparison=None if compared is None else content, overwrite=overwrite)
    if html is not None:
        write_atlas(found, html, overwrite=overwrite)
    written = [str(one) for one in (output, html) if one is not None]
    if json:
        say_json({**content, "written": written})
        return
    say(
        overview_text(found, width(), shown=show)
        if compared is None
        else comparison_text(compared, width(), shown=show)
    )
    if written:
        note(f"\nwritten: {', '.join(written)}")
