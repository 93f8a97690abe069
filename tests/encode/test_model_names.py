"""Names of models that are written without their kind: the error says which kind they belong to."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from crosslens.core import UnknownNameError
from crosslens.encode import ENCODERS, load_encoder, load_pair_scorer
from tests.commands import Call, call as call
from tests.tables import each_row


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection is opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def fix_of(model: str) -> str:
    with pytest.raises(UnknownNameError) as caught:
        load_encoder(model)
    assert str(caught.value).startswith(f"unknown encoder {model!r}")
    return str(caught.value.fix)


@each_row(
    "model, meant",
    [
        ("openai/clip-vit-base-patch32", "clip:openai/clip-vit-base-patch32"),
        ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "clip:laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
        ("google/siglip-base-patch16-224", "siglip:google/siglip-base-patch16-224"),
        ("google/siglip2-base-patch16-224", "siglip:google/siglip2-base-patch16-224"),
        ("Salesforce/blip-itm-base-coco", "blip:Salesforce/blip-itm-base-coco"),
        ("Salesforce/blip2-itm-vit-g", "blip2:Salesforce/blip2-itm-vit-g"),
        ("BAAI/AltCLIP", "altclip:BAAI/AltCLIP"),
        ("facebook/dinov2-base", "dinov2:facebook/dinov2-base"),
        ("facebook/dinov3-vits16-pretrain", "dinov2:facebook/dinov3-vits16-pretrain"),
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence:sentence-transformers/all-MiniLM-L6-v2"),
        ("all-MiniLM-L6-v2", "sentence:all-MiniLM-L6-v2"),
        ("multi-qa-mpnet-base-dot-v1", "sentence:multi-qa-mpnet-base-dot-v1"),
        ("BAAI/bge-small-en", "sentence:BAAI/bge-small-en"),
        ("ViT-B-32/laion2b_s34b_b79k", "openclip:ViT-B-32/laion2b_s34b_b79k"),
        ("ViT-B/32", "openclip:ViT-B-32/openai"),
        ("ViT-B-32", "openclip:ViT-B-32/PRETRAINED, such as openclip:ViT-B-32/laion2b_s34b_b79k"),
        ("RN50", "openclip:RN50/PRETRAINED, such as openclip:ViT-B-32/laion2b_s34b_b79k"),
        ("my_model.py:encoder", "callable:my_model.py:encoder"),
        ("code/my_model.py", "callable:code/my_model.py:NAME, with the name of your object"),
        ("models/text.onnx", "onnx:models/text.onnx"),
        ("tyni", "tiny"),
    ],
)
def test_the_kind_is_suggested(model: str, meant: str) -> None:
    assert fix_of(model) == f"did you mean {meant}?"


def test_every_example_is_recognised_without_its_kind() -> None:
    """Those of kinds that load anything, or folders, cannot be."""
    examples = {entry.name: entry.details["example"] for entry in ENCODERS if "example" in entry.details}
    for kind, example in examples.items():
        if kind not in ("file", "grid", "path"):
            assert fix_of(example) == f"did you mean {kind}:{example}?"


@pytest.mark.parametrize("model", ["microsoft/resnet-50", "somebody/clipped", "models/mine", "./vectors"])
def test_otherwise_the_kinds_are_listed(model: str) -> None:
    fix = fix_of(model)
    assert fix.startswith(f"write KIND:{model}, where KIND says what loads it: align, altclip, blip")
    assert "clip" in fix


def test_a_folder_says_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for model_type, kind in (("siglip", "siglip"), ("blip-2", "blip2"), ("dinov3_vit", "dinov2")):
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        assert fix_of(str(folder)) == f"did you mean {kind}:{folder}?"
    for content in ("{", "[1]", '{"model_type": 3}'):
        (folder / "config.json").write_text(content)
        assert fix_of(str(folder)).startswith(f"write KIND:{folder}, ")


def test_pair_scorers_have_kinds_of_their_own() -> None:
    for model, meant in (
        ("Salesforce/blip2-itm-vit-g", "did you mean blip2:Salesforce/blip2-itm-vit-g?"),
        ("llava-hf/llava-1.5-7b-hf", "did you mean vqa:llava-hf/llava-1.5-7b-hf?"),
    ):
        with pytest.raises(UnknownNameError) as caught:
            load_pair_scorer(model)
        assert caught.value.fix == meant


def test_commands_and_python_say_the_same(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "captions.jsonl"
    file.write_text('{"image": "a.jpg", "captions": ["a dog"]}\n')
    name = "openai/clip-vit-base-patch32"
    expected = f"unknown encoder {name!r}\n  fix: did you mean clip:{name}?"
    for words in (("evaluate", "--dataset", file), ("audit", "--dataset", file, "-o", tmp_path / "out"),
                  ("serve", tmp_path)):  # fmt: skip
        outcome = call(*words, "--model", name)
        assert (outcome.code, outcome.err) == (2, f"error: {expected}\n")
    with pytest.raises(UnknownNameError) as caught:
        load_encoder(name)
    assert str(caught.value) == expected
