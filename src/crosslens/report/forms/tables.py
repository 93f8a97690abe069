"""Sections as LaTeX, Markdown and CSV: their tables, and those behind their charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crosslens.core import (
    Cards,
    Cell,
    Diffs,
    FactList,
    Figure,
    MarkedText,
    Section,
    Table,
    Text,
    TextDiff,
    UsageError,
    cell_text,
)

_LATEX_CHARACTERS = str.maketrans({
    **{letter: f"\\{letter}" for letter in "&%$#_{}"}, "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "→": r"$\rightarrow$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "–": "--", "−": "$-$",
    "<": "$<$", ">": "$>$",
})  # fmt: skip


BOOKTABS = "% needs \\usepackage{booktabs}\n"


def latex(sections: Iterable[Section]) -> str:
    """A booktabs table for each table, with what its columns mean as a comment."""
    tables = [table for section in sections for table in section.tables if not table.folded]
    return BOOKTABS + "\n".join(map(latex_table, tables))


def latex_table(table: Table) -> str:
    """The best cells bold, intervals smaller."""
    comments = [f"% {' '.join(line.split())}" for line in (table.title, *table.notes) if line]
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
    return f"{number} {{\\small {ends}}}" if ends else number


def latex_text(cell: str) -> str:
    """A text of any kind as it is written in LaTeX, on one line."""
    text = " ".join(cell.split()).translate(_LATEX_CHARACTERS)
    # A row must not begin with "[": LaTeX would read it as an argument of the \\ before it.
    return f"{{{text}}}" if text.startswith("[") else text


def markdown(title: str, sections: Iterable[Section]) -> str:
    """A page: headings, texts, tables and lists."""
    blocks = [f"# {title}"]
    for section in sections:
        blocks += [f"## {section.title}"] if section.title not in ("", title) else []
        for part in section.parts:
            if isinstance(part, Text):
                blocks.append("\n\n".join(part.sentences))
            elif isinstance(part, MarkedText):
                blocks.append(part.text)
            elif isinstance(part, FactList):
                names = [name.strip() for name, _ in part.rows]  # numbers make a list of their own
                marks = [name if name.removesuffix(".").isdecimal() else f"- {name}:" for name in names]
                listed = [f"{mark} {text}" for mark, (_, text) in zip(marks, part.rows, strict=True)]
                blocks.append("\n".join([*((f"**{part.title}**", "") if part.title else ()), *listed]))
            elif isinstance(part, Table):
                blocks += [f"**{_markdown_cell(part.title)}**"] if part.title else []
                blocks += [markdown_table(part), *part.notes]
            elif isinstance(part, Cards):
                listed = [f"- {' · '.join((card.title, *card.lines))}" for card in part.cards]
                blocks.append("\n".join([f"**{part.title}**", "", *listed]))
            elif isinstance(part, Diffs):
                blocks += [f"### {part.title}"] if part.title else []
                blocks += [part.about] if part.about else []
                blocks += ["\n".join(["```diff", *_diff_lines(diff), "```"]) for diff in part.diffs]
    return "\n\n".join(blocks) + "\n"


def _diff_lines(diff: TextDiff) -> Iterator[str]:
    """As programs show differences: the text as it was and as it is."""
    before, after = (" ".join("".join(span[side] for span in diff.spans).split()) for side in (0, 1))
    yield f"@@ {diff.name} @@"
    yield from (f"- {before}", f"+ {after}") if diff.edited else (f"  {before}",)
    yield from (f"# {fact}" for fact in (diff.about, *diff.facts) if fact)


def markdown_table(table: Table) -> str:
    """The best cells bold."""
    rule = ["---:" if side == "r" else "---" for side in table.sides]
    rows = [
        [f"**{_markdown_cell(cell)}**" if (number, column) in table.best else _markdown_cell(cell)
         for column, cell in enumerate(row)]
        for number, row in enumerate(table.lines)
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(line)} |" for line in ([*map(_markdown_cell, table.header)], rule, *rows))


def _markdown_cell(cell: Cell) -> str:
    return " ".join(cell_text(cell).replace("|", "\\|").split())


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
        about = {"query id": section.query} if section.query else {}
        about |= {"table": table.title or section.title} if len(same) > 1 else {}
        frames.append(table.frame.select(*(pl.lit(name).alias(column) for column, name in about.items()), pl.all()))
    joined = pl.concat(frames, how="diagonal_relaxed")
    return joined.with_columns(pl.selectors.string().str.strip_chars()).write_csv()
