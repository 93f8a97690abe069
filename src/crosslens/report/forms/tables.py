"""Sections as LaTeX, Markdown and CSV: their tables, and those behind their charts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from crosslens.core import (
    Cards,
    Cell,
    Code,
    Diffs,
    FactList,
    Figure,
    Histogram,
    Intervals,
    MarkedText,
    PairedBars,
    Section,
    SmallMultiples,
    Table,
    Text,
    TextDiff,
    UsageError,
    cell_text,
    flat,
    markdown_text,
    well_formed,
)
from crosslens.storage import for_spreadsheets

_LATEX_SIGNS = {
    "→": r"\rightarrow", "←": r"\leftarrow", "↔": r"\leftrightarrow", "↑": r"\uparrow", "↓": r"\downarrow",
    "−": "-", "±": r"\pm", "×": r"\times", "÷": r"\div", "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "≈": r"\approx",
    "·": r"\cdot", "∞": r"\infty", "√": r"\surd", "∈": r"\in", "‖": r"\|", "′": "'", "✓": r"\surd", "✗": r"\times",
    "▲": r"\bigtriangleup", "▼": r"\bigtriangledown", "⇄": r"\leftrightarrow",
    "△": r"\triangle", "<": "<", ">": ">", "|": r"\vert",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "η": r"\eta", "κ": r"\kappa",
    "λ": r"\lambda", "μ": r"\mu", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "φ": r"\varphi",
    "ω": r"\omega", "Δ": r"\Delta", "Σ": r"\Sigma", "Φ": r"\Phi",
    **{letter: f"^{{{plain}}}" for letter, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ", "0123456789+-T", strict=True)},
    **{letter: f"_{{{plain}}}" for letter, plain in zip("₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+-n", strict=True)},
}  # fmt: skip
_LATEX_CHARACTERS = str.maketrans({
    **{sign: f"${command}$" for sign, command in _LATEX_SIGNS.items()},
    **{letter: f"\\{letter}" for letter in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "–": "--", "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "‘": "`", "’": "'",
    "†": r"\dag{}", "‡": r"\ddag{}", "•": r"$\bullet$", "½": r"$\frac{1}{2}$", "\u00a0": "~", "\ufffd": "?",
})  # fmt: skip
"""All signs that results are written with: a table without other letters is ASCII, which every LaTeX compiles."""
_MINUS = re.compile(r"(?<![\w.-])-(?=\.?\d)")


BOOKTABS = "% needs \\usepackage{booktabs}\n"


def latex(sections: Iterable[Section]) -> str:
    """A booktabs table for each table, with what its columns mean as a comment."""
    tables = [table for section in sections for table in section.tables if not table.folded]
    return BOOKTABS + "\n".join(map(latex_table, tables))


def latex_table(table: Table) -> str:
    """The best cells bold, intervals smaller."""
    comments = [f"% {' '.join(well_formed(line).split())}" for line in (table.title, *table.notes) if line]
    rows = [
        " & ".join(_latex_cell(cell, (number, column) in table.best) for column, cell in enumerate(row)) + r" \\"
        for number, row in enumerate(table.lines)
    ]
    head = " & ".join(map(latex_text, table.header)) + r" \\"
    lines = [f"\\begin{{tabular}}{{{table.sides}}}", "\\toprule", head, "\\midrule", *rows, "\\bottomrule"]
    return "\n".join([*comments, *lines, "\\end{tabular}"]) + "\n"


def _latex_cell(cell: Cell, best: bool) -> str:
    number = latex_text(cell.number if isinstance(cell, Figure) else cell_text(cell))
    number = f"\\textbf{{{number}}}" if best else number
    if not isinstance(cell, Figure) or not cell.interval:
        return number
    ends = cell.interval
    if not cell.mark.startswith("("):  # not a second number, but a sign that a note explains
        ends = ends.removesuffix(cell.mark).rstrip()
        number += f"$^{{{cell.mark}}}$" if cell.mark else ""
    return f"{number} {{\\small {_latex_characters(ends)}}}" if ends else number


def latex_text(cell: str) -> str:
    """A text of any kind as it is written in LaTeX, on one line."""
    text = _latex_characters(" ".join(well_formed(cell).split()))
    # A row must not begin with "[": LaTeX would read it as an argument of the \\ before it.
    return f"{{{text}}}" if text.startswith("[") else text


def _latex_characters(text: str) -> str:
    """A hyphen before a number is a minus sign; two, as of an option, must not become a dash."""
    parts = _MINUS.sub("−", text).split("--")
    return "-{}-".join(part.translate(_LATEX_CHARACTERS) for part in parts)


def markdown(title: str, sections: Iterable[Section]) -> str:
    """A page: headings, texts, tables and lists."""
    literal = markdown_text
    blocks = [f"# {literal(title)}"]
    for section in sections:
        blocks += [f"## {literal(section.title)}"] if section.title not in ("", title) else []
        for part in flat(section.parts):
            if isinstance(part, Text):
                blocks += map(literal, part.sentences)
            elif isinstance(part, MarkedText):
                blocks.append(literal(part.text))
            elif isinstance(part, Code):
                blocks.append("\n".join(f"    {line}" for line in part.text.splitlines()))
            elif isinstance(part, FactList):
                names = [name.strip() for name, _ in part.rows]  # numbers make a list of their own
                marks = [name if re.fullmatch(r"[0-9]+\.", name) else f"- {literal(name)}:" for name in names]
                listed = [f"{mark} {literal(text)}" for mark, (_, text) in zip(marks, part.rows, strict=True)]
                blocks += [*_markdown_title(part.title), "\n".join(listed)]
            elif isinstance(part, Table):
                blocks += [*_markdown_title(part.title), markdown_table(part), *map(literal, part.notes)]
            elif isinstance(part, Intervals | SmallMultiples | PairedBars) or (
                isinstance(part, Histogram) and part.printed
            ):
                blocks += [*_markdown_title(part.title), markdown_table(part.table)]
            elif isinstance(part, Cards):
                listed = [f"- {literal(' · '.join((card.title, *card.lines)))}" for card in part.cards]
                blocks += [*_markdown_title(part.title), "\n".join(listed)]
            elif isinstance(part, Diffs):
                blocks += [f"### {literal(part.title)}"] if part.title else []
                blocks += [literal(part.about)] if part.about else []
                for diff in part.diffs:
                    content = "\n".join(_diff_lines(diff))
                    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 0)
                    blocks.append(f"{fence}diff\n{content}\n{fence}")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _markdown_title(title: str) -> list[str]:
    return [f"**{markdown_text(title)}**"] if title.strip() else []


def _diff_lines(diff: TextDiff) -> Iterator[str]:
    """As programs show differences: the text as it was and as it is."""
    before, after = (_one_line("".join(span[side] for span in diff.spans)) for side in (0, 1))
    yield f"@@ {_one_line(diff.name)} @@"
    yield from (f"- {before}", f"+ {after}") if diff.edited else (f"  {before}",)
    yield from (f"# {_one_line(fact)}" for fact in (diff.about, *diff.facts) if fact)


def _one_line(text: str) -> str:
    return " ".join(well_formed(text).split())


def markdown_table(table: Table) -> str:
    """The best cells bold."""
    rule = ["---:" if side == "r" else "---" for side in table.sides]
    rows = [
        [f"**{markdown_text(cell_text(cell))}**" if (number, column) in table.best else markdown_text(cell_text(cell))
         for column, cell in enumerate(row)]
        for number, row in enumerate(table.lines)
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in ([*map(markdown_text, table.header)], rule, *rows))


def csv(sections: Iterable[Section]) -> str:
    """The tables with the columns of the first below each other, values unrounded; columns say of what a row is."""
    import polars as pl

    tables = [(section, table) for section in sections for table in section.tables]
    if not tables:
        raise UsageError("the result has no table", fix="choose .html or .json")
    first = tables[0][1]
    same = [
        (section, table)
        for section, table in tables
        if table.header == first.header or (section.query and table.title == first.title)
    ]
    frames = []
    for section, table in same:
        origin = {"query id": section.query} if section.query else {}
        origin |= {"table": table.title or section.title} if len(same) > 1 else {}
        frames.append(table.frame.select(*(pl.lit(name).alias(column) for column, name in origin.items()), pl.all()))
    joined = pl.concat(frames, how="diagonal_relaxed")
    return for_spreadsheets(joined.with_columns(pl.selectors.string().str.strip_chars())).write_csv()
