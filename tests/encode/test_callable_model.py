"""Encoders by name, the person's own ones, stored vectors, and models on the hub."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, MissingExtraError, UnknownNameError, UsageError
from crosslens.encode import ENCODERS, EncodeOptions, Encoder, encode_dataset, load_encoder, load_pair_scorer
from crosslens.encode.loading import find_model, folder_revision, needed_files
from tests.encode.conftest import Counting

MODULE = """
import numpy as np

class Mine:
    revision = "2024-05"
    def encode_texts(self, texts):
        return np.array([[len(text), 1.0] for text in texts])

encoder = Mine()
nothing = 3
"""


def test_names_say_which_kind() -> None:
    with pytest.raises(UnknownNameError) as raised:
        load_encoder("clp:openai/clip")
    assert "clip" in raised.value.suggestions
    with pytest.raises(UsageError, match="has no :"):
        load_encoder("clip")
    with pytest.raises(UsageError, match="has no source"):
        load_encoder("clip:")
    with pytest.raises(UnknownNameError, match="fp8"):
        load_encoder("clip:x", precision="fp8")


def test_every_encoder_explains_itself() -> None:
    names = {entry.name for entry in ENCODERS}
    assert {"clip", "siglip", "align", "altclip", "groupvit", "flava", "blip", "blip2", "dinov2"} <= names
    assert {"sentence", "onnx", "openclip", "callable", "file"} <= names
    for entry in ENCODERS:
        assert entry.summary.endswith((".", ")"))


def test_an_object_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "my_model.py"
    file.write_text(MODULE)
    for attribute in ("encoder", "Mine"):
        encoder = load_encoder(f"callable:{file}:{attribute}")
        assert isinstance(encoder, Encoder)
        assert encoder.abilities == {"texts"}
        assert encoder.revision == "2024-05"
        np.testing.assert_array_equal(encoder.encode_texts(["ab", "a"]), [[2, 1], [1, 1]])


def test_an_installed_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_installed_module")
    module.model = Counting()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_installed_module", module)
    assert load_encoder("callable:my_installed_module:model").abilities == {"images", "texts"}


def test_mistakes_in_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "other_model.py"
    file.write_text(MODULE)
    for source, message in (
        ("encoder", "names no object"),
        (f"{file}:other", "has no 'other'"),
        (f"{tmp_path}/none.py:encoder", "no such file"),
        ("no_such_module:encoder", "cannot import"),
    ):
        with pytest.raises((UsageError, InputError), match=message):
            load_encoder(f"callable:{source}")
    with pytest.raises(UsageError, match="is not an encoder"):
        load_encoder(object())  # type: ignore[arg-type]


def test_a_plain_function_is_no_factory(tmp_path: Path) -> None:
    file = tmp_path / "functions.py"
    file.write_text(
        "def encode(texts):\n    return [[1.0]]\n\ndef vectors():\n    return [[1.0]]\n\n"
        "class Sized:\n    def __init__(self, size):\n        self.encode_texts = self.score_pairs = size\n"
    )
    for load, methods in ((load_encoder, "encode_images or encode_texts"), (load_pair_scorer, "score_pairs")):
        for attribute, problem in (
            ("encode", r"is a function with arguments \(missing a required argument: 'texts'\); a factory is expected"),
            ("Sized", r"is a class with arguments \(missing a required argument: 'size'\); a factory is expected"),
            ("vectors", f"returns list, which has no {methods}; a factory is expected"),
        ):
            with pytest.raises(UsageError, match=f"callable:functions.py:{attribute} {problem}") as raised:
                load(f"callable:{file}:{attribute}")
            assert f"without arguments that gives an object with {methods}" in str(raised.value)


def test_torch_tensors_are_understood() -> None:
    torch = pytest.importorskip("torch", reason="pip install 'crosslens[torch]'")

    class Tensors:
        def encode_texts(self, texts: list[str]) -> Any:
            return torch.ones(len(texts), 2, dtype=torch.bfloat16, requires_grad=True)

    encoder = load_encoder(Tensors())  # type: ignore[arg-type]
    np.testing.assert_array_equal(encoder.encode_texts(["one"]), [[1, 1]])
    assert encoder.revision == ""


def test_stored_vectors(tmp_path: Path) -> None:
    dataset = cl.Dataset.of({"a": ["one"], "b": ["two"]})
    cl.Embeddings(("b", "a"), np.array([[2.0, 0], [1, 0]]), model="clip").save(tmp_path / "images")
    cl.Embeddings(("a#0", "b#0"), np.eye(2), model="clip").save(tmp_path / "captions")
    encoded = encode_dataset(dataset, load_encoder(f"file:{tmp_path}"))
    assert encoded.images is not None
    assert encoded.images.ids == ("a", "b")
    np.testing.assert_array_equal(encoded.images.vectors, [[1, 0], [2, 0]])
    assert encoded.images.model == "clip"
    with pytest.raises(UsageError, match="holds vectors"):
        load_encoder(f"file:{tmp_path}").encode_texts(["one"])
    with pytest.raises(InputError, match="no embeddings"):
        load_encoder(f"file:{tmp_path / 'images'}")
    with pytest.raises(InputError):
        encode_dataset(cl.Dataset.of({"c": ["one"]}), load_encoder(f"file:{tmp_path}"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError) as raised:
        load_encoder(f"onnx:{tmp_path}/model.onnx")
    assert "crosslens[onnx]" in str(raised.value.fix)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError):
        load_encoder(f"clip:{tmp_path}")


# The hub


class Hub(types.ModuleType):
    """Stands in for huggingface_hub: a local cache and a far side, which must not be reached unannounced."""

    def __init__(self, cache: Path, messages: list[str]) -> None:
        super().__init__("huggingface_hub")
        self.utils = types.SimpleNamespace(get_session=lambda: types.SimpleNamespace(head=lambda *_, **__: None))
        self.constants = types.SimpleNamespace(ENDPOINT="https://hub.test")
        self.cache, self.said, self.fetched = cache, messages, []

    def folder(self, name: str) -> Path:
        return self.cache / name.replace("/", "--") / "snapshots" / "c0ffee"

    def try_to_load_from_cache(self, name: str, file: str) -> str | None:
        path = self.folder(name) / file
        return str(path) if path.exists() else None

    def snapshot_download(self, name: str, allow_patterns: list[str]) -> str:
        assert self.said, "the network must be announced before it is used"
        if name == "owner/broken":
            raise OSError("401 Client Error\nmany more lines")
        self.folder(name).mkdir(parents=True, exist_ok=True)
        self.fetched = list(allow_patterns)
        for file in allow_patterns:
            (self.folder(name) / file).write_text(file)
        return str(self.folder(name))

    def HfApi(self) -> Hub:
        return self

    def list_repo_files(self, name: str) -> list[str]:
        return ["config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "vocab.txt", "README.md"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    stand_in = Hub(tmp_path / "hub", [])
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return stand_in


def test_the_network_is_announced_then_used_once(hub: Hub) -> None:
    place = find_model("owner/model", EncodeOptions(notify=hub.said.append))
    assert place.revision == "c0ffee"
    assert hub.fetched == ["config.json", "model.safetensors", "vocab.txt"]
    assert "owner/model" in hub.said[0]
    hub.said.clear()
    hub.fetched = []
    assert find_model("owner/model", EncodeOptions(offline=True)) == place, "from then on the local cache serves"
    assert hub.fetched == []


def test_a_half_fetched_model_is_not_taken_for_whole(hub: Hub) -> None:
    folder = hub.folder("owner/model")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="offline mode"):
        find_model("owner/model", EncodeOptions(offline=True))
    parts = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(parts))
    (folder / "model-1.safetensors").write_bytes(b"")
    with pytest.raises(UsageError, match="offline mode"):
        find_model("owner/model", EncodeOptions(offline=True))
    (folder / "model-2.safetensors").write_bytes(b"")
    assert find_model("owner/model", EncodeOptions(offline=True)).folder == folder


def test_offline_forbids_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="offline mode"):
        find_model("owner/model", EncodeOptions(offline=True, notify=hub.said.append))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match="offline mode"):
        find_model("owner/model", EncodeOptions(notify=hub.said.append))
    assert hub.said == []


def test_a_name_that_cannot_be_fetched(hub: Hub) -> None:
    with pytest.raises(InputError, match="401 Client Error") as raised:
        find_model("owner/broken", EncodeOptions(notify=hub.said.append))
    assert "many more" not in str(raised.value)


def test_what_is_fetched() -> None:
    assert needed_files(["pytorch_model.bin", "config.json", "flax_model.msgpack", "onnx/model.onnx"]) == [
        "pytorch_model.bin",
        "config.json",
    ]
    assert "1_Pooling/config.json" in needed_files(["modules.json", "1_Pooling/config.json", "model.safetensors"])


def test_a_folder_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = folder_revision(tmp_path)
    (tmp_path / "README.md").write_text("does not matter")
    assert folder_revision(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert folder_revision(tmp_path) != first
    with pytest.raises(InputError, match="is a file"):
        find_model(str(tmp_path / "config.json"), EncodeOptions())
