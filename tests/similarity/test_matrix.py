"""The matrix of a dataset: in memory, on disk, stopped and gone on with, found again by ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.cli.console import LogLines
from crosslens.core import ConflictError, InputError, UnknownNameError, UsageError
from crosslens.similarity import Cider, load_similarity, matrix, prepare_dataset
from crosslens.similarity.precomputed import read_description
from crosslens.storage import Workspace

from .test_cider import captions_like

DATASET = cl.Dataset.of(
    {f"image-{n}": texts for n, texts in enumerate(captions_like(np.random.default_rng(5), 30))}, name="thirty"
)
WHOLE = cl.relevance_matrix(DATASET)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    rows = 4
    monkeypatch.setattr(matrix, "_BLOCK_BYTES", rows * 4 * WHOLE.shape[1])
    return rows


class Stops(Exception):
    """A process that dies."""


class Interrupted(Cider):
    """CIDEr that dies after some blocks, and counts the blocks it is asked for."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.left, self.asked = blocks, 0

    def prepare(self, *arguments, **options):  # type: ignore[no-untyped-def]
        prepared = super().prepare(*arguments, **options)
        whole = prepared.block

        def block(rows: slice):  # type: ignore[no-untyped-def]
            if self.asked == self.left:
                raise Stops
            self.asked += 1
            return whole(rows)

        prepared.block = block
        return prepared


def test_aligned_with_the_ids_read_only_and_single() -> None:
    assert WHOLE.shape == (len(DATASET.image_ids), len(DATASET.caption_ids))
    assert WHOLE.dtype == np.float32
    assert not WHOLE.flags.writeable
    own_values = WHOLE[DATASET.caption_image, np.arange(WHOLE.shape[1])]
    assert own_values.mean() > WHOLE.mean()


def test_pairs_are_cells() -> None:
    rng = np.random.default_rng(0)
    images, captions = rng.integers(0, WHOLE.shape[0], 50), rng.integers(0, WHOLE.shape[1], 50)
    np.testing.assert_array_equal(
        cl.similarity.relevance_pairs(DATASET, "cider", images, captions), WHOLE[images, captions]
    )


@pytest.mark.parametrize(("images", "captions"), [([0], [0, 1]), ([-1], [0]), ([0], [10_000]), ([[0]], [[0]])])
def test_pairs_outside_are_refused(images: list[int], captions: list[int]) -> None:
    with pytest.raises(UsageError):
        cl.similarity.relevance_pairs(DATASET, "cider", np.array(images), np.array(captions))


@pytest.mark.usefixtures("small_blocks")
def test_on_disk_the_same_and_described(tmp_path: Path) -> None:
    file = tmp_path / "new" / "N.npy"
    result = cl.relevance_matrix(DATASET, output=file)
    np.testing.assert_array_equal(result, WHOLE)
    np.testing.assert_array_equal(np.load(file), WHOLE)
    described = json.loads((tmp_path / "new" / "N.npy.json").read_text())
    assert described["image_ids"] == list(DATASET.image_ids)
    assert described["caption_ids"] == list(DATASET.caption_ids)
    assert (described["phi"], described["shape"], described["dataset"]) == ("cider", list(WHOLE.shape), "thirty")
    assert sorted(file.name for file in file.parent.iterdir()) == ["N.npy", "N.npy.json"]


def test_a_stopped_call_goes_on_where_it_was(
    tmp_path: Path, small_blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "N.npy"
    blocks = -(-len(DATASET.image_ids) // small_blocks)
    with pytest.raises(Stops):
        cl.relevance_matrix(DATASET, Interrupted(3), output=file)
    assert not file.exists()
    again = Interrupted(blocks)
    watching = LogLines()
    np.testing.assert_array_equal(cl.relevance_matrix(DATASET, again, output=file, progress=watching), WHOLE)
    assert again.asked == blocks - 3
    note = f"similarity: resumed at image {3 * small_blocks} of {len(DATASET.image_ids)}"
    assert capsys.readouterr().err == f"note: {note}\n"
    done = Interrupted(0)
    np.testing.assert_array_equal(cl.relevance_matrix(DATASET, done, output=file), WHOLE)
    assert done.asked == 0


@pytest.mark.usefixtures("small_blocks")
def test_what_was_left_by_another_dataset_or_damaged_is_not_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "N.npy"
    reordered = DATASET.select(DATASET.image_ids[::-1])
    with pytest.raises(Stops):
        cl.relevance_matrix(reordered, Interrupted(3), output=file)
    np.testing.assert_array_equal(cl.relevance_matrix(DATASET, output=file), WHOLE)
    file.unlink()
    (tmp_path / "N.npy.json").unlink()
    with pytest.raises(Stops):
        cl.relevance_matrix(DATASET, Interrupted(3), output=file)
    Workspace(file).beside("rows").write_text("{")
    np.testing.assert_array_equal(cl.relevance_matrix(DATASET, output=file), WHOLE)


def test_other_numbers_are_replaced_only_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "N.npy"
    cl.relevance_matrix(DATASET, output=file)
    with pytest.raises(ConflictError, match="different matrix"):
        cl.relevance_matrix(DATASET, "rouge-l", output=file)
    result = cl.relevance_matrix(DATASET, "rouge-l", output=file, overwrite=True)
    np.testing.assert_array_equal(result, cl.relevance_matrix(DATASET, "rouge-l"))
    described = read_description(file)
    assert described is not None
    assert described.phi == "rouge-l"


def test_somebody_elses_json_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "N.npy.json").write_text('{"mine": 1}')
    with pytest.raises(ConflictError, match="does not describe a matrix"):
        cl.relevance_matrix(DATASET, output=tmp_path / "N.npy")
    assert (tmp_path / "N.npy.json").read_text() == '{"mine": 1}'


def test_output_must_be_npy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"N\.npy"):
        cl.relevance_matrix(DATASET, output=tmp_path / "N.csv")


# Matrices as φ


def test_found_again_by_ids_in_any_order_and_part(tmp_path: Path) -> None:
    file = tmp_path / "N.npy"
    cl.relevance_matrix(DATASET, output=file)
    some = DATASET.select(DATASET.image_ids[20:5:-3])
    rows = [DATASET.image_ids.index(image) for image in some.image_ids]
    columns = [DATASET.caption_ids.index(caption) for caption in some.caption_ids]
    np.testing.assert_array_equal(cl.relevance_matrix(some, str(file)), WHOLE[np.ix_(rows, columns)])
    result = cl.similarity.relevance_pairs(some, file, np.array([1, 0]), np.array([0, 2]))
    np.testing.assert_array_equal(result, [WHOLE[rows[1], columns[0]], WHOLE[rows[0], columns[2]]])


def test_an_array_must_have_the_shape() -> None:
    np.testing.assert_array_equal(cl.relevance_matrix(DATASET, np.array(WHOLE, np.float64)), WHOLE)
    with pytest.raises(InputError, match="transpose"):
        cl.relevance_matrix(DATASET, WHOLE.T)
    with pytest.raises(InputError, match="30 images"):
        cl.relevance_matrix(DATASET, WHOLE[:5])
    with pytest.raises(InputError, match="images × captions"):
        load_similarity(np.array(["a"]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_number_that_is_none_is_refused_with_its_place(tmp_path: Path, bad: float) -> None:
    values = WHOLE.copy()
    values[3, 7] = bad
    np.save(tmp_path / "N.npy", values)
    with pytest.raises(InputError, match="column 7") as caught:
        cl.relevance_matrix(DATASET, tmp_path / "N.npy")
    assert caught.value.row == 3
    assert cl.similarity.relevance_pairs(DATASET, tmp_path / "N.npy", np.array([0]), np.array([0])) == WHOLE[0, 0]
    with pytest.raises(InputError, match="column 7"):
        cl.similarity.relevance_pairs(DATASET, tmp_path / "N.npy", np.array([3]), np.array([7]))


SMALL = cl.Dataset.of({"a": ["one"], "b": ["two", "three"]})


def test_csv_with_ids(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("image,b#1,a#0,b#0\nb,3,1,2\na,6,4,5\n")
    np.testing.assert_array_equal(cl.relevance_matrix(SMALL, tmp_path / "wide.csv"), [[4, 5, 6], [1, 2, 3]])
    pairs = [
        f"{image},{caption},{n}" for n, (image, caption) in enumerate((i, c) for c in SMALL.caption_ids for i in "ab")
    ]
    (tmp_path / "pairs.csv").write_text("\n".join(["image,caption,score", *pairs]))
    np.testing.assert_array_equal(cl.relevance_matrix(SMALL, tmp_path / "pairs.csv"), [[0, 2, 4], [1, 3, 5]])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("image,a#0,b#0\na,1,2\nb,3,4\n", "1 of the dataset's 3 caption ids are not in the matrix, the first is 'b#1'"),
        (
            "image,a#0,b#0,b#1\na,1,2,3\n",
            "image ids are not in the matrix, the first is 'b'; the matrix begins with 'a'",
        ),
        ("image,a#0,b#0,b#1\na,1,2,3\nb,4,x,6\n", "'x' in column 'b#0'"),
        ("image,a#0,b#0,b#1\na,1,2,3\nb,4,,6\n", "φ is nan in column 1"),
        ("image,a#0,b#0,b#1\na,1,2,3\na,4,5,6\n", "duplicate image id 'a'"),
        ("image,caption,score\na,a#0,1\na,a#0,2\n", "occurs twice"),
        ("image,a#0,a#0\na,1,2\n", "duplicate caption id 'a#0'"),
        ("image:a#0\na:1\n", "only one column"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_table_names_file_and_row(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "N.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        cl.relevance_matrix(SMALL, file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        cl.relevance_matrix(SMALL, tmp_path / "none.npy")


# Functions and names


def test_a_function_is_called_with_the_captions_of_the_image() -> None:
    def shared(references: list[str], caption: str) -> int:
        return sum(caption == reference for reference in references)

    np.testing.assert_array_equal(cl.relevance_matrix(SMALL, shared), [[1, 0, 0], [0, 1, 1]])
    np.testing.assert_array_equal(
        cl.similarity.relevance_pairs(SMALL, shared, np.array([1, 0]), np.array([1, 1])), [1, 0]
    )
    assert load_similarity(shared).name.endswith("shared")


@pytest.mark.parametrize("value", [float("nan"), None, "many"])
def test_a_function_that_gives_no_number_is_named(value: object) -> None:
    with pytest.raises(InputError, match="for the caption 'one'"):
        cl.relevance_matrix(SMALL, lambda references, caption: value)  # type: ignore[arg-type, return-value]


def test_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean cider"):
        load_similarity("cidre")
    with pytest.raises(UsageError, match="no option 'nope'"):
        load_similarity("cider", nope=1)
    with pytest.raises(UsageError, match="takes options"):
        load_similarity(WHOLE, df=SMALL)
    with pytest.raises(UsageError, match="is no φ"):
        load_similarity(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="threads = 0"):
        prepare_dataset(SMALL, "cider", threads=0)
