"""Leaderboards for papers: LaTeX."""

from __future__ import annotations

from crosslens.metrics import facts_of, format_figure
from crosslens.pipeline import Leaderboard, Standing
from crosslens.report.export.tables import latex_text
from crosslens.report.text.results.leaderboard import is_alone, mark, marks_sentence


def leaderboard_latex(board: Leaderboard) -> str:
    """A booktabs table: a row per model, the metrics under their datasets; marked as in the text."""
    columns = [
        (dataset, metric)
        for dataset in board.datasets
        for metric in board.metrics
        if any((model, dataset, metric) in board.cells for model in board.models)
    ]
    lines = [
        "% needs \\usepackage{booktabs}",
        f"% {marks_sentence(board.level)}",
        f"% paired permutation test over images, correction: {board.correction}, {board.tests} tests",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        *_dataset_header(columns),
        " & ".join(["model", *(_title(metric) for _, metric in columns)]) + r" \\",
        "\\midrule",
    ]
    for model in board.models:
        cells = [
            _cell(board.cell(model, dataset, metric), is_alone(board, dataset, metric)) for dataset, metric in columns
        ]
        lines.append(" & ".join([latex_text(model), *cells]) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _dataset_header(columns: list[tuple[str, str]]) -> list[str]:
    """The datasets over their metrics, each with a rule under it."""
    names = list(dict.fromkeys(dataset for dataset, _ in columns))
    widths = [sum(dataset == name for dataset, _ in columns) for name in names]
    ends = [1 + sum(widths[: number + 1]) for number in range(len(widths))]
    spans = [f"\\multicolumn{{{width}}}{{c}}{{{latex_text(name)}}}" for name, width in zip(names, widths, strict=True)]
    rules = [f"\\cmidrule(lr){{{end - width + 1}-{end}}}" for width, end in zip(widths, ends, strict=True)]
    return [" & ".join(["", *spans]) + r" \\", " ".join(rules)]


def _title(metric: str) -> str:
    arrow = "up" if facts_of(metric).higher_is_better else "down"
    return f"{latex_text(metric)} $\\{arrow}arrow$"


def _cell(cell: Standing | None, alone: bool) -> str:
    if cell is None:
        return "--"
    figure = latex_text(format_figure(cell.metric, cell.mean))
    marked = mark(cell.best, cell.significant, alone)
    return (f"\\textbf{{{figure}}}" if cell.best else figure) + (f"$^{{{marked}}}$" if marked else "")
