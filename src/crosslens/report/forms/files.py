"""Results as files: the ending of the name decides the form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from crosslens.core import ENDINGS, FORMS, PICTURES, ConflictError, Presented, UsageError
from crosslens.report.export import write_changed
from crosslens.report.forms.charts import draw
from crosslens.report.forms.drawing import drawn_file
from crosslens.report.forms.page import section_page
from crosslens.report.forms.tables import csv, latex, markdown
from crosslens.report.forms.terminal import terminal
from crosslens.storage import json_form


@FORMS.register("file")
def write_result(result: Presented, file: str | Path, *, overwrite: bool = False) -> Path:
    """Write a result in the form that the file's ending names."""
    file = Path(file)
    check_ending(file)
    if file.is_dir():
        raise ConflictError(f"{file} is a folder", fix="name a file")
    write_changed({file: file_content(result, file.suffix.lower())}, overwrite)
    return file


def check_ending(file: Path) -> None:
    """Raise unless the ending of the name is that of a form."""
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{file}: unknown form {file.suffix or '(no ending)'}", fix=f"end the name in {', '.join(ENDINGS)}"
        )


@FORMS.register("content")
def file_content(result: Presented, ending: str) -> bytes:
    """The bytes of a file with this ending."""
    sections = list(result.sections())
    if ending in PICTURES:
        charts = [chart for section in sections for chart in section.charts]
        if not charts:
            raise UsageError(f"the result has no chart for a {ending} file", fix="choose .html, .csv, .tex or .md")
        return drawn_file([draw(chart) for chart in charts], ending)
    if ending == ".json":
        return (json.dumps(json_form(result.as_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    forms: dict[str, Callable[[], str]] = {
        ".html": lambda: section_page(result.title, sections),
        ".csv": lambda: csv(sections),
        ".tex": lambda: latex(sections),
        ".md": lambda: markdown(result.title, sections),
        ".txt": lambda: terminal(sections, None) + "\n",
    }
    return forms[ending]().encode()
