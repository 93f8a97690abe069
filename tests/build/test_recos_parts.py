"""The parts of a build: hashes of pictures, near-duplicates, the decision log."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosslens.analyze.near_duplicates import NearDuplicates
from crosslens.analyze.picture_hash import BITS, hash_files, picture_hash
from crosslens.build import DecisionLog, RecosSettings
from crosslens.build.log import FORMAT, VERSION
from crosslens.core.errors import FormatVersionError, InputError, UsageError

Image = pytest.importorskip("PIL.Image", reason="pip install 'crosslens[scenes]'")
HEAD = {"step": "settings", "format": FORMAT, "version": VERSION}


def pictures(count: int) -> list[Any]:
    from crosslens.synth import generate

    return [scene.render() for scene in generate(count, "object,colour,count,location", seed=5)]


def different(one: Any, other: Any) -> int:
    return int((picture_hash(one) != picture_hash(other)).sum())


def test_the_same_picture_saved_otherwise_has_nearly_the_same_hash() -> None:
    for picture in pictures(12):
        packed = io.BytesIO()
        picture.save(packed, "JPEG", quality=60)
        assert different(picture, picture.copy()) == 0
        assert different(picture, Image.open(packed)) <= RecosSettings.duplicate_bits
        assert different(picture, picture.resize((150, 150))) <= RecosSettings.duplicate_bits


def test_other_pictures_have_other_hashes() -> None:
    shown = pictures(24)
    least = min(different(one, other) for row, one in enumerate(shown) for other in shown[:row])
    assert least > 2 * RecosSettings.duplicate_bits


def test_a_picture_in_other_colours_is_another_picture() -> None:
    picture = pictures(1)[0]
    red, green, blue = picture.split()
    assert different(picture, Image.merge("RGB", (blue, red, green))) > 0
    grey = picture.convert("L")
    bits = picture_hash(grey).reshape(3, 64)
    assert (bits[0] == bits[1]).all(), "of a grey picture all channels say the same"


def test_a_plain_picture_has_a_plain_hash() -> None:
    assert not picture_hash(Image.new("RGB", (50, 40), (10, 200, 90))).reshape(3, 64)[:, 1:].any()


def test_an_unreadable_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"bad\.png"):
        hash_files([str(tmp_path / "bad.png")])


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.integers(-1, 12))
def test_near_duplicates_are_all_pairs_that_are_near(seed: int, cosine: float, bits: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((20, 3))
    vectors[7] = 3 * vectors[2]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hashes = rng.random((20, BITS)) < 0.5
    hashes[11] = hashes[4]
    hashes[11, :5] ^= True
    found = NearDuplicates(vectors, hashes, cosine, bits)
    for one in range(20):
        near = {
            other
            for other in range(20)
            if other != one
            and (vectors[one] @ vectors[other] >= cosine or (hashes[one] != hashes[other]).sum() <= bits)
        }
        clear = {o for o in range(20) if abs(vectors[one] @ vectors[o] - cosine) > 1e-8}
        for other in set(range(20)) - {one}:
            if other in clear:
                assert (found.among(one, [other]) is not None) == (other in near)
        first = found.among(one, range(20))
        if near <= clear:
            assert (None if first is None else first[0]) == min(near, default=None)


def test_why_two_are_one() -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    hashes = np.zeros((3, BITS), bool)
    hashes[1, :30] = True
    hashes[2, :3] = True
    found = NearDuplicates(vectors, hashes, 0.98, 12)
    assert found.among(0, {1}) == (1, ("vectors", 1.0))
    assert found.among(0, {2}) == (2, ("hash", 3.0))
    assert NearDuplicates(vectors, None, 2, 12).among(0, {1, 2}) is None
    assert NearDuplicates(vectors, hashes, 2, -1).among(0, {1, 2}) is None


def test_a_log_comes_back_as_it_was(tmp_path: Path) -> None:
    log = DecisionLog([HEAD])
    log("check", caption="a\u2028b", dis=1 / 3, near=[(1, 0.12345678)], none=None)
    log.save(tmp_path / "decisions.jsonl")
    again = DecisionLog.load(tmp_path)
    assert again.entries == log.entries
    assert again.entries[1] == {
        "step": "check", "caption": "a\u2028b", "dis": 0.333333, "near": [[1, 0.123457]], "none": None
    }  # fmt: skip
    assert again.of("check") == again.entries[1:]


def test_a_repeated_build_must_decide_the_same() -> None:
    def log(**facts: Any) -> DecisionLog:
        made = DecisionLog([HEAD])
        made("check", **facts)
        return made

    log(dis=0.5, verdict="kept").check_same(log(dis=0.50001, verdict="kept"))
    with pytest.raises(UsageError, match="line 2"):
        log(dis=0.5, verdict="kept").check_same(log(dis=0.5, verdict="too vague"))
    with pytest.raises(UsageError, match="line 2"):
        log(dis=0.5).check_same(log(dis=0.6))
    with pytest.raises(UsageError, match="0 decisions, the log 1"):
        log(dis=0.5).check_same(DecisionLog([HEAD]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"step": "settings"}\n', "no decision log"),
        (f'{{"step": "settings", "format": "{FORMAT}", "version": 1}}\nnot json\n', "line 2"),
        (f'{{"step": "settings", "format": "{FORMAT}", "version": 1}}\n[1, 2]\n', "line 2"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        DecisionLog.load(tmp_path / "log.jsonl")


def test_other_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        DecisionLog.load(tmp_path / "none.jsonl")
    (tmp_path / "new.jsonl").write_text(f'{{"step": "settings", "format": "{FORMAT}", "version": 99}}\n')
    with pytest.raises(FormatVersionError, match="version 99"):
        DecisionLog.load(tmp_path / "new.jsonl")


@pytest.mark.parametrize(
    "wrong",
    [{"k": 1}, {"eta": 0}, {"eta": 2}, {"descriptions": 0}, {"attempts": -1}, {"originals": 0}, {"temperature": -1},
     {"duplicate_bits": -2}, {"similar": -1}],
)  # fmt: skip
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        RecosSettings(**wrong)
