"""``crosslens evaluate --rerank``: a second stage over the top of every list, kept, resumed and repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli import main
from crosslens.encode import Cache

DEPTH = 3
MODEL = """
import os
import numpy as np

class Scorer:
    revision = "one"
    def score_pairs(self, images, texts):
        if os.path.exists("stop") and os.path.exists("seen.txt"):
            raise RuntimeError("killed")
        with open("seen.txt", "a") as out:
            out.writelines(f"{text}\\n" for text in texts)
        return [float(np.asarray(image)[0, 0, 0]) * (1 + len(text)) % 7 for image, text in zip(images, texts)]
"""


@pytest.fixture
def place(photos: cl.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    photos.save(tmp_path / "dataset")
    (tmp_path / "model.py").write_text(MODEL)
    rng = np.random.default_rng(5)
    np.save(tmp_path / "scores.npy", rng.random((6, 12), np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


BASE = ["evaluate", "--dataset", "./dataset", "--scores", "scores.npy", "--resamples", "0"]
ANY_DEPTH = [*BASE, "--rerank", "callable:model.py:Scorer", "--image-folder", "photos"]
RERANK = [*ANY_DEPTH, "--rerank-depth", str(DEPTH)]


def scored_pairs(place: Path) -> int:
    return len((place / "seen.txt").read_text().splitlines()) if (place / "seen.txt").exists() else 0


def reordered(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], depth: int) -> list[list[int]]:
    """Row by row: the first ``depth`` by the second score, the others below in the order of the first."""
    orders = []
    for row, by in zip(first, second, strict=True):
        order = sorted(range(len(row)), key=lambda item: (-row[item], item))
        orders.append(sorted(order[:depth], key=lambda item: (-by[item], item)) + order[depth:])
    return orders


def check(run: cl.Run, first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], depth: int = DEPTH) -> None:
    for direction, first_scores, second_scores in (("i2t", first, second), ("t2i", first.T, second.T)):
        wanted = reordered(first_scores, second_scores, depth)
        ranking = run.rankings[direction]
        kept = min(depth, 10)
        assert ranking.top_items[:, :kept].tolist() == [row[:kept] for row in wanted]
        for query, relevant, above, before in zip(
            ranking.rows, ranking.relevant, ranking.above, ranking.tied_before, strict=True
        ):
            assert above + before == wanted[query].index(relevant)


def own_scores(place: Path) -> np.ndarray[Any, Any]:
    from PIL import Image

    dataset = cl.load_dataset("./dataset")
    reds = [float(np.asarray(Image.open(place / "photos" / file))[0, 0, 0]) for file in dataset.images["file"]]
    return np.array([[red * (1 + len(text)) % 7 for text in dataset.texts] for red in reds], np.float32)


def test_both_directions_by_a_slow_obvious_way(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RERANK, "-o", "runs/two"]) == 0
    run = cl.Run.load("runs/two")
    first = np.load("scores.npy")
    check(run, first, own_scores(place))
    assert main([*BASE, "-o", "runs/one"]) == 0
    below = cl.Run.load("runs/one").rankings["t2i"]
    for ranking in (below, run.rankings["t2i"]):
        assert ranking.complete
    deep, plain = run.rankings["t2i"].above >= DEPTH, below.above >= DEPTH
    assert (deep == plain).all(), "nothing crosses the depth"
    assert (run.rankings["t2i"].above[deep] == below.above[plain]).all()
    assert "the top 3 of every list is re-ranked by callable:model.py:Scorer" in capsys.readouterr().err
    told = json.loads(Path("runs/two/run.json").read_text())["provenance"]["second_stage"]
    assert (told["model"], told["revision"], told["depth"]) == ("callable:model.py:Scorer", "one", DEPTH)


def test_what_was_scored_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RERANK, "--direction", "t2i"]) == 0
    once = scored_pairs(place)
    assert once == 12 * DEPTH
    assert main([*RERANK, "--direction", "t2i"]) == 0
    assert scored_pairs(place) == once, "the same pairs again are not scored"
    assert main([*ANY_DEPTH, "--direction", "t2i", "--rerank-depth", str(DEPTH + 1)]) == 0
    assert scored_pairs(place) == once + 12, "only the new ones"
    assert main([*RERANK, "--direction", "t2i", "--no-cache"]) == 0
    assert scored_pairs(place) == 2 * once + 12
    (place / "model.py").write_text(MODEL.replace('"one"', '"two"'))
    assert main([*RERANK, "--direction", "t2i"]) == 0
    assert scored_pairs(place) == 3 * once + 12, "another model's scores are not taken"


def test_after_a_stop_the_same_command_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Cache.__init__.__kwdefaults__, "shard_items", 4)
    command = [*RERANK, "--batch-size", "5", "-o", "runs/two"]
    (place / "stop").touch()
    assert main(command) == 6, "the user's own error"
    assert scored_pairs(place) == 5, "the second batch was too much"
    (place / "stop").unlink()
    assert main(command) == 0
    first, second = np.load("scores.npy"), own_scores(place)
    pairs = {(image, item) for image, row in enumerate(reordered(first, second, DEPTH)) for item in row[:DEPTH]}
    pairs |= {(item, text) for text, row in enumerate(reordered(first.T, second.T, DEPTH)) for item in row[:DEPTH]}
    assert scored_pairs(place) == len(pairs), (
        "the first batch was kept; of the two directions' pairs none is scored twice"
    )
    check(cl.Run.load("runs/two"), first, second)
    after = scored_pairs(place)
    assert main(command) == 0
    assert scored_pairs(place) == after


def test_a_run_can_be_repeated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RERANK, "-o", "runs/two"]) == 0
    recipe = (place / "runs/two/recipe.toml").read_text()
    assert '[rerank]\nmodel = "callable:../../model.py:Scorer"\ndepth = 3\n' in recipe
    assert 'image_folder = "../../photos"' in recipe
    assert main(["run", "--trust-code", "runs/two/recipe.toml", "-o", "runs/again"]) == 0
    assert "every query has the same value" in capsys.readouterr().err
    (place / "model.py").write_text(MODEL.replace('"one"', '"two"'))
    assert main(["run", "--trust-code", "runs/two/recipe.toml"]) == 3
    assert "the rerank model changed" in capsys.readouterr().err
    (place / "model.py").write_text(MODEL)
    (place / "photos" / "0.png").write_bytes((place / "photos" / "1.png").read_bytes())
    assert main(["run", "--trust-code", "runs/two/recipe.toml"]) == 3
    assert "the pictures changed" in capsys.readouterr().err
    assert main([*RERANK, "-o", "runs/two"]) == 5, "other pictures, another run"


def test_folds_and_ready_made_lists(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RERANK, "--folds", "2", "-o", "runs/folds"]) == 0
    run, second = cl.Run.load("runs/folds"), own_scores(place)
    first = np.load("scores.npy")
    inside = [slice(0, 3), slice(3, 6)], [slice(0, 6), slice(6, 12)]
    wanted = []
    for images, captions in zip(*inside, strict=True):
        part = reordered(first[images, captions], second[images, captions], DEPTH)
        wanted += [[captions.start + item for item in row[:DEPTH]] for row in part]
    assert run.rankings["i2t"].top_items[:, :DEPTH].tolist() == wanted
    lists = "".join(
        f"p{image} Q0 p{caption // 2}#{caption % 2} {place} {-place} mine\n"
        for image in range(6)
        for place, caption in enumerate(np.argsort(-first[image], kind="stable")[:5])
    )
    (place / "lists.run").write_text(lists)
    command = [*BASE[:3], "--run", "lists.run", *RERANK[7:], "-o", "runs/lists", "--metrics", "Hit@1"]
    assert main(command) == 0
    again = cl.Run.load("runs/lists").rankings["i2t"]
    assert again.top_items[:, :DEPTH].tolist() == [row[:DEPTH] for row in reordered(first, second, DEPTH)]


def test_a_depth_beyond_the_gallery_and_below_the_lists(place: Path) -> None:
    assert main([*ANY_DEPTH, "--rerank-depth", "100", "-o", "runs/all"]) == 0
    second = own_scores(place)
    check(cl.Run.load("runs/all"), second, second)
    assert cl.Run.load("runs/all").rankings["i2t"].depth == 10, "a run keeps what --depth says"


def test_wrong_use_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([*BASE, "--rerank-depth", "5"], "a re-ranking depth without a model"),
        ([*BASE, "--rerank", "blop:x"], "did you mean blip"),
        ([*BASE, "--rerank", "blip"], "has no :"),
        ([*BASE, "--rerank", "callable:model.py:np"], "is not a pair scorer"),
        ([*ANY_DEPTH, "--rerank-depth", "0"], "greater than or equal to 1"),
        (["evaluate", "--run", "x", "--qrels", "y", *RERANK[7:9]], "--rerank requires --dataset"),
        ([*BASE[:3], "--model", "callable:x:y", "--image-text", "mean", *RERANK[7:9]], "no images to re-rank"),
    ):
        assert main(arguments) == 2, arguments
        assert message in capsys.readouterr().err
    assert main([*ANY_DEPTH[:-1], "nowhere"]) == 3
    assert "no such folder" in capsys.readouterr().err
    text = '[dataset]\nsource = "./dataset"\n\n[inputs]\nscores = "scores.npy"\n\n[rerank]\nmodel = "blip:x"\n'
    (place / "mine.toml").write_text(text + "depth = 0\n")
    assert main(["run", "mine.toml"]) == 3
    assert "line 9" in capsys.readouterr().err


def test_an_unreadable_image(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "photos" / "4.png").write_bytes(b"oh no")
    assert main(RERANK) == 3
    assert "4.png" in capsys.readouterr().err


@pytest.mark.slow  # both stages are tested by themselves
def test_blip_finds_and_blip_re_orders(place: Path) -> None:
    """Both stages of one saved model, held against the library's own calls."""
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    import torch
    import transformers
    from PIL import Image

    from tests.encode.tiny_models import WORDS, save_model

    save_model("blip", place / "blip")
    command = ["evaluate", "--model", "blip:blip", "--rerank", "blip:blip", "--rerank-depth", str(DEPTH)]
    command += ["--dataset", "./described", "--image-folder", "photos", "--device", "cpu", "--offline", "--json"]
    captions = {
        f"p{row}": [f"a {WORDS[3 + row]} on grass", f"two {WORDS[12 + row]} and a red ball"] for row in range(6)
    }
    files = {"file": [f"{row}.png" for row in range(6)]}
    cl.Dataset.of(captions, images=files).save(place / "described")
    assert main([*command, "-o", "runs/blip"]) == 0
    model = transformers.BlipForImageTextRetrieval.from_pretrained(place / "blip").eval()
    prepare = transformers.AutoImageProcessor.from_pretrained(place / "blip", backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "blip")
    dataset = cl.load_dataset("./described")
    first, second = np.zeros((2, 6, 12), np.float32)
    with torch.inference_mode():
        for row, file in enumerate(dataset.images["file"]):
            pixels = prepare(Image.open(place / "photos" / file), return_tensors="pt")
            for column, text in enumerate(dataset.texts):
                words = tokenizer(text, return_tensors="pt")
                logits = model(**words, **pixels, use_itm_head=True).itm_score[0]
                first[row, column] = model(**words, **pixels, use_itm_head=False).itm_score
                second[row, column] = logits[1] - logits[0]
    check(cl.Run.load("runs/blip"), first, second)
    told = json.loads((place / "runs/blip/run.json").read_text())["provenance"]
    assert told["second_stage"]["model"].startswith("blip:")
    assert told["second_stage"]["revision"]
