"""``crosslens encode`` and ``crosslens evaluate --model``, from files to figures, without the network."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import crosslens as cl
from crosslens.cli import main
from tests.encode.conftest import Counting

MODEL = """
import numpy as np

class Model:
    revision = "one"
    logit_scale = 10.0
    def encode_images(self, images):
        return np.stack([np.asarray(one, np.float32)[::9, ::9].mean(axis=(0, 1)) for one in images])
    def encode_texts(self, texts):
        return np.array([[len(one), one.count("e"), ord(one[8])] for one in texts], np.float32)
"""


@pytest.fixture
def place(photos: cl.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    photos.save(tmp_path / "dataset")
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


ENCODE = ["encode", "--model", "callable:model.py:Model", "--dataset", "./dataset", "--image-folder", "photos"]
EVALUATE = ["evaluate", *ENCODE[1:], "--resamples", "0"]


def test_two_folders_that_evaluate_reads(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ENCODE, "-o", "vectors", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["shapes"] == {"images": [6, 3], "captions": [12, 3]}
    assert (told["revision"], told["logit_scale"]) == ("one", 10.0)
    images = cl.Embeddings.load("vectors/images")
    assert images.ids == tuple(f"p{number}" for number in range(6))
    assert images.model == "callable:model.py:Model@one"
    command = ["evaluate", "--dataset", "./dataset", "--resamples", "0", "--json"]
    assert main([*command, "--image-embeddings", "vectors/images", "--caption-embeddings", "vectors/captions"]) == 0
    by_hand = json.loads(capsys.readouterr().out)
    assert main([*EVALUATE, "--json"]) == 0
    at_once = json.loads(capsys.readouterr().out)
    assert at_once["metrics"] == by_hand["metrics"]
    assert main([*ENCODE, "-o", "vectors"]) == 0, "the same again is no conflict"
    assert main([*ENCODE, "-o", "vectors", "--precision", "bf16"]) == 0
    assert "6 images as 3 vectors" in capsys.readouterr().out
    np.save("other.npy", images.vectors)


def test_something_else_is_not_replaced(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cl.Embeddings.of(np.eye(3)).save(place / "vectors" / "images")
    assert main([*ENCODE, "-o", "vectors"]) == 5
    assert "--overwrite" in capsys.readouterr().err
    assert main([*ENCODE, "-o", "vectors", "--overwrite"]) == 0


def test_an_unreadable_image(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "photos" / "4.png").write_bytes(b"oh no")
    assert main([*ENCODE, "-o", "vectors"]) == 3
    message = capsys.readouterr().err
    assert "p4" in message
    assert "--skip-bad" in message
    assert main([*ENCODE, "-o", "vectors", "--skip-bad"]) == 0
    message = capsys.readouterr().err
    assert "1 unreadable images" in message
    assert "p4" in message
    embeddings = ["--image-embeddings", "vectors/images", "--caption-embeddings", "vectors/captions"]
    assert main(["evaluate", "--dataset", "vectors/dataset", *embeddings, "--resamples", "0", "--json"]) == 0
    by_hand = json.loads(capsys.readouterr().out)
    assert main([*EVALUATE, "--skip-bad", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == by_hand["metrics"]


def test_an_image_that_is_not_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "photos" / "4.png").unlink()
    assert main([*ENCODE, "-o", "vectors"]) == 3
    message = capsys.readouterr().err
    assert "1 of 6 image files" in message
    assert "'p4'" in message
    assert main([*ENCODE, "-o", "vectors", "--skip-bad"]) == 0
    assert "p4 (missing)" in capsys.readouterr().err
    assert "p4" not in cl.load_dataset("vectors/dataset/").image_ids
    assert main([*EVALUATE, "--skip-bad"]) == 0
    assert "p4 (missing)" in capsys.readouterr().err


def test_a_run_of_a_model_can_be_repeated(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "-o", "runs/mine"]) == 0
    recipe = (place / "runs/mine/recipe.toml").read_text()
    assert 'name = "callable:../../model.py:Model"' in recipe
    assert 'image_folder = "../../photos"' in recipe
    assert main(["run", "--trust-code", "runs/mine/recipe.toml", "-o", "runs/again"]) == 0
    assert "every query has the same value" in capsys.readouterr().err
    (place / "model.py").write_text(MODEL.replace('"one"', '"two"'))
    assert main(["run", "--trust-code", "runs/mine/recipe.toml", "-o", "runs/third"]) == 3
    assert "the model changed" in capsys.readouterr().err
    assert main(["run", "--trust-code", "runs/mine/recipe.toml", "-o", "runs/third", "--allow-changed"]) == 0


def test_a_model_s_name_does_not_depend_on_the_way_to_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosslens.encode import name_of

    (place / "models" / "mine").mkdir(parents=True)
    assert name_of("clip", "models/mine") == name_of("clip", f"{place}/photos/../models/mine") == "clip:models/mine"
    monkeypatch.chdir(place / "photos")
    assert name_of("clip", "../models/mine") == "clip:models/mine"
    assert name_of("clip", "owner/model") == "clip:owner/model"


def test_a_changed_picture_is_noticed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "-o", "runs/mine"]) == 0
    (place / "photos" / "0.png").write_bytes((place / "photos" / "1.png").read_bytes())
    assert main(["run", "--trust-code", "runs/mine/recipe.toml"]) == 3
    assert "items changed" in capsys.readouterr().err


def test_text_only_retrieval(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--model", "callable:model.py:Model", "--dataset", "./dataset", "--image-text", "mean"]
    assert main([*command, "--resamples", "0", "--metrics", "Hit@1 MedR", "-o", "runs/t2t", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["metrics"]) == {"t2t/Hit@1", "t2t/MedR"}
    assert main(["show", "runs/t2t"]) == 0
    assert main(["run", "--trust-code", "runs/t2t/recipe.toml"]) == 0
    assert "every query has the same value" in capsys.readouterr().err
    assert main([*command, "--direction", "t2i"]) == 2
    assert main([*command[:-1], "extractive", "--query-caption", "1", "--resamples", "0", "--folds", "2"]) == 0


def test_wrong_use_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="pip install 'crosslens[encoders]'")
    for arguments, message in (
        (ENCODE, "missing option -o/--output"),
        (["encode", "--dataset", "./dataset", "-o", "x"], "missing option --model"),
        ([*EVALUATE, "--scores", "s.npy"], "both scores and a model"),
        (["evaluate", "--dataset", "./dataset", "--skip-bad"], "no model"),
        (["evaluate", "--model", "callable:model.py:Model"], "--model requires --dataset"),
        (["encode", "--model", "clap:x", "--dataset", "./dataset", "-o", "x"], "did you mean clip"),
        ([*EVALUATE[:2], "clip:owner/model", *EVALUATE[3:], "--offline"], "offline mode"),
        ([*EVALUATE, "--image-text", "transformers:owner/t5", "--offline"], "offline mode"),
        ([*EVALUATE, "--image-text", "men"], "unknown summariser"),
        ([*EVALUATE, "--query-caption", "1"], "--query-caption requires --image-text"),
    ):
        assert main(arguments) == 2, arguments
        assert message in capsys.readouterr().err


def test_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--list"]) == 0
    assert "clip:openai/clip-vit-base-patch32" in capsys.readouterr().out
    assert main(["encode", "--list", "--json"]) == 0
    assert {"clip", "sentence", "onnx"} <= {entry["kind"] for entry in json.loads(capsys.readouterr().out)}


def test_the_cache_is_where_it_is_said_to_be(place: Path, own_cache: Path) -> None:
    assert main([*ENCODE, "-o", "one", "--no-cache"]) == 0
    assert not own_cache.exists()
    assert main([*ENCODE, "-o", "two", "--cache", "kept"]) == 0
    assert list(place.glob("kept/embeddings/*/*.npz"))
    assert not own_cache.exists()
    assert main([*ENCODE, "-o", "three"]) == 0
    assert own_cache.exists()


def test_a_model_in_a_recipe_by_hand(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[dataset]\nsource = "./dataset"\n\n[model]\nname = "callable:model.py:Model"\nimage_folder = "photos"\n'
    (place / "mine.toml").write_text(text)
    assert main(["run", "--trust-code", "mine.toml"]) == 0
    (place / "mine.toml").write_text(text + "skip_bad = 3\n")
    assert main(["run", "--trust-code", "mine.toml"]) == 3
    assert "line 7" in (message := capsys.readouterr().err)
    assert "true or false" in message
    (place / "mine.toml").write_text(text + 'precison = "fp16"\n')
    assert main(["run", "--trust-code", "mine.toml"]) == 3
    assert "did you mean precision" in capsys.readouterr().err


def test_the_counting_encoder_is_an_encoder() -> None:
    from crosslens.encode import Encoder

    assert isinstance(Counting(), Encoder)


def test_pictures_inside_other_files(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same vectors from files, from a tar archive and from a table; nothing but the dataset is named."""
    names, texts = [f"p{number}" for number in range(6)], cl.load_dataset("./dataset").captions
    content = [(place / "photos" / f"{number}.png").read_bytes() for number in range(6)]
    rows = {
        "image_id": names,
        "caption": texts.group_by("image", maintain_order=True).agg("text")["text"],
        "raw": content,
    }
    (place / "elsewhere").mkdir()
    pl.DataFrame(rows).write_parquet("elsewhere/rows.parquet")
    with tarfile.open("elsewhere/s.tar", "w") as tar:
        for number, name in enumerate(names):
            facts = json.dumps({"captions": rows["caption"][number].to_list()}).encode()
            for ending, data in (("png", content[number]), ("json", facts)):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    assert main([*ENCODE, "-o", "files"]) == 0
    wanted = cl.Embeddings.load("files/images").vectors
    for number, reader in enumerate(
        (["webdataset", "-D", "shards=elsewhere"], ["huggingface", "-D", "dataset=elsewhere/rows.parquet"])
    ):
        assert main([*ENCODE[:3], "--dataset", *reader, "-o", f"v{number}", "--no-cache"]) == 0
        np.testing.assert_array_equal(cl.Embeddings.load(f"v{number}/images").vectors, wanted)
        assert main(["evaluate", *ENCODE[1:3], "--dataset", *reader, "--resamples", "0", "-o", f"runs/{number}"]) == 0
        assert main(["run", "--trust-code", f"runs/{number}/recipe.toml", "-o", f"runs/{number}-again"]) == 0
        assert "every query has the same value" in capsys.readouterr().err


def test_a_dataset_s_own_folder_is_where_its_files_are(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = cl.load_dataset("./dataset")
    with_folder = replace(dataset, images=dataset.images.with_columns(file="pictures/" + pl.col("file")))
    with_folder.save("whole")
    assert main([*ENCODE[:3], "--dataset", "./whole", "-o", "none"]) == 3
    assert "pass --image-folder" in capsys.readouterr().err
    (place / "photos").rename(place / "whole" / "pictures")
    assert main([*ENCODE[:3], "--dataset", "./whole", "-o", "some"]) == 0
    nameless = replace(dataset, images=dataset.images.drop("file"))
    nameless.save("nameless")
    assert main([*ENCODE[:3], "--dataset", "./nameless", "-o", "none"]) == 3
    assert "names no files" in capsys.readouterr().err
