"""One frame for every page, with all texts escaped."""

from __future__ import annotations

from pathlib import Path

import crosslens.report
from crosslens.report.forms.page import folded, html_page, links

NASTY = "<script>alert('x')</script> & more"
ESCAPED = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; more"


def test_titles_and_cells_are_escaped() -> None:
    texts = [
        html_page(NASTY, ""),
        folded(NASTY, ""),
        links([(NASTY, NASTY)], NASTY),
    ]
    for text in texts:
        assert NASTY not in text
        assert ESCAPED in text


def test_a_page_needs_no_other_file() -> None:
    text = html_page("title", "<p>body</p>", script="let x = 1")
    assert text.startswith("<!DOCTYPE html>")
    assert "<h1>title</h1>\n<p>body</p>" in text
    assert "</style>\n<script>let x = 1</script>" in text
    assert "<h1>" not in html_page("title", "", heading=False)
    assert "http" not in text


def test_pages_are_framed_in_one_file() -> None:
    folder = Path(crosslens.report.__file__).parent
    texts = {file.name: file.read_text("utf-8") for kind in ("*.py", "*.html") for file in folder.rglob(kind)}
    assert [name for name, text in texts.items() if "<!doctype html>" in text.lower()] == ["page.html"]
