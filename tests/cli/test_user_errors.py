"""An exception in the user's own code is told as theirs: the exception, their file, their line; no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosslens.core import as_user_error, user_code

from .conftest import Call

CODE = '''
import numpy as np
import crosslens as cl
from crosslens.data import READERS
from crosslens.perturbations import image_perturbation, perturbation
from crosslens.similarity import SIMILARITIES

class Model:
    def encode_images(self, images):
        return np.ones((len(images), 2))

    def encode_texts(self, texts):
        return self.stack(texts)

    def stack(self, texts):
        return np.stack([np.zeros(2), np.zeros(3)])

class NoParameter:
    def encode_images(self): ...
    encode_texts = encode_images

class Scorer:
    def score_pairs(self, images, texts):
        raise RuntimeError("no weights")

def factory():
    raise RuntimeError("no file")

@cl.metric("Raises", definition="nothing")
def raises(ranks, spec):
    """Raises."""
    return {}["key"]

@cl.metric("Short", definition="nothing")
def short(ranks, spec):
    """Too few numbers."""
    return [1.0]

@cl.metric("OneParameter", definition="nothing")
def one_parameter(ranks):
    """A parameter is missing."""

@READERS.register("opens")
def opens(captions: str):
    """Opens.

    captions: nothing
    """
    open("/nonexistent/file")

@READERS.register("nothing")
def nothing(captions: str):
    """Returns nothing.

    captions: nothing
    """

@SIMILARITIES.register("divides")
def load_divides(source):
    """Divides."""
    def divides(references, caption):
        return 1 / 0
    return divides

@SIMILARITIES.register("number")
def load_number(source):
    """No function."""
    return 7

@perturbation("breaks", level="word")
def breaks(caption, draws):
    """Breaks."""
    return caption.nothing

@image_perturbation("fades", (1, 2, 3, 4, 5), "steps")
def fades(pixels, amount, draws):
    """Breaks."""
    return pixels.fade(amount)

@image_perturbation("grows", (1, 2, 3, 4, 5), "steps")
def grows(pixels, amount, draws):
    """Another size."""
    return np.zeros((1, 1, 3), np.uint8)

@perturbation("shouts", level="word")
def shouts(caption, draws):
    """Returns a text."""
    return caption.text.upper()
'''


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "captions.jsonl").write_text(
        json.dumps({"image": "one.png", "captions": ["a dog"]})
        + "\n"
        + json.dumps({"image": "two.png", "captions": ["a cat"]}),
        encoding="utf-8",
    )
    for name in ("one", "two"):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{name}.png")
    np.save(tmp_path / "scores.npy", np.eye(2, dtype=np.float32))
    return tmp_path


EVALUATE = ("evaluate", "--dataset", "captions.jsonl")
SCORES = (*EVALUATE, "--scores", "scores.npy", "--plugin", "mine.py", "--metrics")
MODEL = (*EVALUATE, "--no-cache", "--model")
PERTURB = ("perturb", "--dataset", "captions.jsonl", "--plugin", "mine.py", "-o", "out", "--name")


def line_of(code: str) -> int:
    return next(number for number, line in enumerate(CODE.splitlines(), start=1) if line.strip() == code)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ((*MODEL, "callable:mine.py:Model"), "ValueError in your code, in stack: all input arrays must have the same",
         "return np.stack([np.zeros(2), np.zeros(3)])"),
        ((*MODEL, "callable:mine.py:factory"), "RuntimeError in your code, in factory: no file",
         'raise RuntimeError("no file")'),
        ((*SCORES, "Hit@1", "--rerank", "callable:mine.py:Scorer"), "RuntimeError in your code, in score_pairs", ""),
        ((*SCORES, "Raises"), "KeyError in your code, in raises: 'key'", 'return {}["key"]'),
        ((*SCORES, "NCS[divides]@1"), "ZeroDivisionError in your code, in divides: division by zero", "return 1 / 0"),
        (("data", "describe", "opens", "--captions", "x", "--plugin", "mine.py"),
         "FileNotFoundError in your code, in opens", 'open("/nonexistent/file")'),
        ((*PERTURB, "breaks"), "AttributeError in your code, in breaks", "return caption.nothing"),
        ((*PERTURB, "fades"), "AttributeError in your code, in fades", "return pixels.fade(amount)"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_an_exception_is_told_with_its_line(
    words: tuple[str, ...], message: str, code: str, desk: Path, call: Call
) -> None:
    outcome = call(*words)
    assert outcome.code == 6
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 3
    if code:
        assert f"{desk / 'mine.py'}:{line_of(code)}: " in outcome.err
        assert f"{line_of(code)} | {code}\n" in outcome.err
    assert "CROSSLENS_TRACEBACK=1" in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*MODEL, "callable:mine.py:NoParameter"), "encode_images() takes 1 positional argument but 2 were given"),
        ((*SCORES, "OneParameter"), "one_parameter() takes 1 positional argument but 2 were given"),
        ((*SCORES, "Short"), "the metric Short returned an array of shape (1,) for 2 queries"),
        ((*SCORES, "NCS[number]@1"), "the similarity 'number' gave 7"),
        (("data", "describe", "nothing", "--captions", "x", "--plugin", "mine.py"), "'nothing' returned None"),
        ((*PERTURB, "grows"), "did not return a picture of the same size"),
        ((*PERTURB, "shouts"), "the perturbation 'shouts' returned 'A DOG'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_a_function_that_does_not_fit_is_named(words: tuple[str, ...], message: str, desk: Path, call: Call) -> None:
    outcome = call(*words)
    assert outcome.code == 6
    assert message in outcome.err
    assert f"{desk / 'mine.py'}:" in outcome.err


def test_a_syntax_error_in_a_plugin(desk: Path, call: Call) -> None:
    (desk / "broken.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    outcome = call("metrics", "--plugin", "broken.py")
    assert outcome.code == 6
    assert f"{desk / 'broken.py'}:2: SyntaxError in your code" in outcome.err
    assert "    2 | def f(:\n" in outcome.err


def test_the_whole_traceback_on_request(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from crosslens.cli import main

    monkeypatch.setenv("CROSSLENS_TRACEBACK", "1")
    assert main([*SCORES, "Raises"]) == 6
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_error_of_crosslens_stays_one(desk: Path) -> None:
    """A traceback without a line of the user's is not theirs, even while their code is loaded."""
    user_code._USER_CODE.add(desk)
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    assert caught.tb.tb_next is not None
    assert as_user_error(caught.value.with_traceback(caught.tb.tb_next)) is None
