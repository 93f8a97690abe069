"""Values that once ended in a traceback: each is a message that states the rule and the value."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crosslens.analyze.hard_negatives.reading import read_aro
from crosslens.build import load_generator
from crosslens.core import UsageError
from crosslens.data import read_array
from crosslens.similarity import relevance_matrix
from crosslens.values import Dataset
from tests.hostile.conftest import Refused, Refuses
from tests.hostile.test_http import ask, chat, serving, whole
from tests.tables import each_row

HALVES = {
    "in a description": json.dumps({"descriptions": ["a \ud800 dog"]}),
    "not escaped": '{"descriptions": ["a \ud800 dog"]}',
    "the other half, not escaped": '{"descriptions": ["a \udc80 dog"]}',
    "the other half": json.dumps({"descriptions": ["\udfff"]}),
    "as a key": json.dumps({"descriptions": ["a dog"], "\ud800": 1}),
    "outside the JSON": '{"descriptions": ["a dog"]} \ud800',
}


@pytest.mark.parametrize("answer", HALVES)
def test_an_answer_with_half_of_a_character_is_not_used(answer: str) -> None:
    notes: list[str] = []
    with serving(whole(chat(HALVES[answer]))) as address:
        assert ask(address, notes, timeout=20) == ()
    assert "no usable answer" in notes[-1]
    notes[-1].encode()


def test_a_pair_of_halves_is_one_character() -> None:
    with serving(whole(chat(json.dumps({"descriptions": ["a \U0001f415"]})))) as address:
        assert ask(address, timeout=20) == ("a \U0001f415",)


OPTIONS = [
    "timeout=inf&retries=0", "timeout=nan", "timeout=0", "timeout=-1", "timeout=1e400", "timeout=1e9", "timeout=",
    "retries=999999999&first_wait=0", "retries=-1", "retries=1.5", "retries=1e3", f"retries={'9' * 5000}",
    "first_wait=inf", "first_wait=-inf", "first_wait=nan", "first_wait=1e300",
    "max_bytes=0", f"max_bytes={10**30}", "workers=0", "workers=1000000000", "max_descriptions=-1",
    "max_descriptions=99999999999", "pictures=perhaps", "unknown=1",
]  # fmt: skip


@each_row("options", OPTIONS, ids=lambda text: text[:40])
@each_row("scheme", ["http", "vqa"])
def test_options_of_an_address_have_ranges(options: str, scheme: str) -> None:
    from crosslens.encode import load_pair_scorer

    address = f"{scheme}:http://127.0.0.1:9/v1?model=small&{options}"
    with pytest.raises(UsageError) as raised:
        load_generator(address) if scheme == "http" else load_pair_scorer(address)
    assert options.partition("=")[0] in str(raised.value)
    assert len(str(raised.value)) < 500


@each_row(
    "address",
    [
        "http://[::1/v1?model=a", "http://a]/v1?model=a", "http://?model=a", "ftp://a?model=a",
        "http://a..b/v1?model=a", f"http://{'a' * 64}/v1?model=a", "http://.a/v1?model=a", "http://\udcff/v1?model=a",
        "http://127.0.0.1:9/\u00e9?model=a", "http://127.0.0.1:9/\udcff?model=a", "http://b\u00fccher.example/?model=a",
        "http://127.0.0.1:\u0663/v1?model=a", "http://127.0.0.1:99999/v1?model=a", "http://127.0.0.1:x/v1?model=a",
    ],
    ids=ascii,
)  # fmt: skip
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="is not"):
        load_generator(f"http:{address}")


@pytest.mark.parametrize(
    "key", ["sk-first\nsk-second", "sk-\u043a\u043b\u044e\u0447", "sk-\udcff", "sk-\x07"], ids=ascii
)
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSLENS_API_KEY", key)
    with pytest.raises(UsageError, match="CROSSLENS_API_KEY") as raised:
        ask("http://127.0.0.1:9/v1")
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize("command", ["evaluate", "encode", "similarity", "synth", "perturb", "report", "convert"])
def test_the_root_is_no_output(command: str, tmp_path: Path, refused: Refused) -> None:
    Dataset.of({"a": ["one"], "b": ["two"]}).save(tmp_path / "d")
    np.save(tmp_path / "s.npy", np.eye(2, dtype=np.float32))
    words = {
        "evaluate": ["evaluate", "--dataset", tmp_path / "d", "--scores", tmp_path / "s.npy"],
        "encode": ["encode", "--dataset", tmp_path / "d", "--model", "tiny"],
        "similarity": ["similarity", "--dataset", tmp_path / "d", "--phi", "cider"],
        "synth": ["synth", "--images", "1", "--tasks", "colour"],
        "perturb": ["perturb", "--dataset", tmp_path / "d", "--name", "char_swap"],
        "report": ["report", tmp_path / "d"],
        "convert": ["data", "convert", tmp_path / "d"],
    }[command]
    refused(*words, *([] if command == "convert" else ["-o"]), "/")
    refused(*words, *([] if command == "convert" else ["-o"]), "//")


@pytest.mark.parametrize("side", [10**400, -(10**400), float("inf"), float("nan"), True, "1", None, 0, -1])
def test_a_box_of_aro(side: object, tmp_path: Path, refuses: Refuses) -> None:
    case = {"image_path": "a.jpg", "true_caption": "a", "false_caption": "b", "relation_name": "on"}
    box = {"bbox_x": 0, "bbox_y": 0, "bbox_w": side, "bbox_h": 5}
    (tmp_path / "visual_genome_relation.json").write_text(json.dumps([{**case, **box}]))
    assert "bad box" in refuses(lambda: read_aro(tmp_path / "visual_genome_relation.json"))


def test_tensors_that_are_no_arrays(tmp_path: Path, refuses: Refuses) -> None:
    torch = pytest.importorskip("torch")
    dense = torch.ones(4, 4)
    tensors = {
        "sparse_coo": dense.to_sparse(), "sparse_csr": dense.to_sparse_csr(), "sparse_csc": dense.to_sparse_csc(),
        "sparse_bsr": dense.to_sparse_bsr((2, 2)), "meta": torch.ones(4, 4, device="meta"),
        "quantized": torch.quantize_per_tensor(dense, 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "Float8": dense.to(torch.float8_e4m3fn),
    }  # fmt: skip
    for kind, tensor in tensors.items():
        for content in (tensor, {"image": tensor}, {"image": tensor, "image_ids": ["a"]}):
            torch.save(content, tmp_path / "a.pt")
            message = refuses(lambda: read_array(tmp_path / "a.pt", "image"))
            assert kind in message or "it holds more than tensors" in message or "cannot be read" in message, kind
    torch.save(dense.to(torch.bfloat16), tmp_path / "a.pt")
    np.testing.assert_array_equal(read_array(tmp_path / "a.pt"), np.ones((4, 4), np.float32))


DESCRIPTIONS = {
    "other ids": {"image_ids": ["x", "y"], "caption_ids": ["p", "q"]},
    "the same ids": {"image_ids": ["a", "b"], "caption_ids": ["0", "1"]},
    "something else": {"made": "by hand"},
    "a list": ["a", "b"],
}


@pytest.mark.parametrize("content", DESCRIPTIONS)
def test_a_file_beside_a_matrix_that_does_not_describe_it(content: str, tmp_path: Path, refused: Refused) -> None:
    """Whose numbers these are is not guessed."""
    Dataset.of({"a": ["one"], "b": ["two"]}).save(tmp_path / "d")
    np.save(tmp_path / "s.npy", np.eye(2, dtype=np.float32))
    np.save(tmp_path / "pp.npy", np.eye(2, dtype=np.float32))
    (tmp_path / "pp.npy.json").write_text(json.dumps(DESCRIPTIONS[content]))
    message = refused(
        "evaluate", "--dataset", tmp_path / "d", "--scores", tmp_path / "s.npy", "--metrics", "NCS[own]@1",
        "--phi", f"own={tmp_path / 'pp.npy'}",
    )  # fmt: skip
    assert "pp.npy.json" in message


def test_a_described_matrix_of_other_ids_is_refused(tmp_path: Path, refused: Refused) -> None:
    Dataset.of({"a": ["one"], "b": ["two"]}).save(tmp_path / "d")
    np.save(tmp_path / "s.npy", np.eye(2, dtype=np.float32))
    relevance_matrix(Dataset.of({"x": ["one"], "y": ["two"]}), "cider", output=tmp_path / "pp.npy")
    message = refused(
        "evaluate", "--dataset", tmp_path / "d", "--scores", tmp_path / "s.npy", "--metrics", "NCS[own]@1",
        "--phi", f"own={tmp_path / 'pp.npy'}",
    )  # fmt: skip
    assert "image ids are not in the matrix" in message
