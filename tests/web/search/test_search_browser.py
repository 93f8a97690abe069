"""Live search in a real browser: a sentence, a dropped picture, a file that is none, a phone."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosslens.values import Dataset
from tests.web.serving import Visitor, served, visit, write_scene_run

pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene_run(tmp_path_factory.mktemp("searched"))


@pytest.fixture(scope="module")
def address(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(scenes, tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def visitor(browser: Any, address: str) -> Iterator[Visitor]:
    with visit(browser, address) as visitor:
        visitor.page.set_default_timeout(90_000)
        yield visitor


def finish(page: Any) -> None:
    page.wait_for_selector("#live[data-state=done], #live[data-state=failed]")


def drop(page: Any, content: bytes, name: str, kind: str) -> None:
    """Drop a file, as a hand would."""
    transfer = page.evaluate_handle(
        """([text, name, type]) => {
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], name, { type }));
            return transfer;
        }""",
        [base64.b64encode(content).decode(), name, kind],
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})


def test_a_sentence(visitor: Visitor, scenes: Path) -> None:
    dataset = Dataset.load(scenes / "scenes")
    page = visitor.open("/search")
    page.fill("input[name=text]", dataset.texts[0])
    page.press("input[name=text]", "Enter")
    finish(page)
    assert page.locator("#hits li").count() == 12
    assert "ms to rank" in page.inner_text("#latency")
    assert page.locator("#words tbody tr").count() >= 3
    assert "more than the second" in page.inner_text("#why")
    assert page.evaluate("document.querySelector('#hits img').naturalWidth") > 0
    assert visitor.serious() == []
    page.locator("#hits a").first.click()
    page.wait_for_url("**/datasets/*/image?**")
    assert (visitor.complaints, visitor.elsewhere) == ([], [])


def test_a_dropped_picture_finds_itself(visitor: Visitor, scenes: Path) -> None:
    dataset = Dataset.load(scenes / "scenes")
    page = visitor.open("/search")
    file = scenes / "scenes" / dataset.images["file"][4]
    drop(page, file.read_bytes(), "picture.png", "image/png")
    finish(page)
    first = page.locator("#hits li").first.inner_text()
    assert dataset.image_ids[4] in first
    assert "1.0000" in first
    assert page.is_visible("#preview")
    assert visitor.complaints == []


def test_a_file_that_is_no_picture_is_refused_in_words(visitor: Visitor) -> None:
    page = visitor.open("/search")
    drop(page, b"<svg xmlns='x' onload='alert(1)'/>", "x.png", "image/png")
    finish(page)
    assert "not a readable image" in page.inner_text("#status")
    assert all("422" in line for line in visitor.complaints)  # the browser notes the refusal


def test_markup_in_a_sentence_stays_text(visitor: Visitor) -> None:
    page = visitor.open("/search?text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20dog")
    finish(page)
    assert page.input_value("input[name=text]") == "<img src=x onerror=alert(1)> dog"
    assert page.locator("#words th", has_text="onerror").count() == 1
    assert page.locator("#words img").count() == 0
    assert visitor.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(browser: Any, address: str, scheme: str) -> None:
    with visit(browser, address, viewport={"width": 390, "height": 844}, color_scheme=scheme) as visitor:
        page = visitor.open("/search?text=a+red+ball")
        page.set_default_timeout(90_000)
        finish(page)
        assert not visitor.is_too_wide()
        assert visitor.serious() == []
        assert visitor.complaints == []
