"""FiftyOne datasets on disk: the samples that its exporters write, with their captions, tags and fields."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from crosslens.core import InputError, reading
from crosslens.data.files import read_json
from crosslens.data.loading import READERS
from crosslens.data.rows import Records, check_ids, check_texts, check_unique, ids_or_numbers, text_table
from crosslens.values import Dataset

FIFTYONE_SAMPLES = "samples.json"
_OTHERS = ("id", "metadata", "created_at", "last_modified_at")
_RESERVED = ("image", "file", "caption", "text")


@READERS.register("fiftyone", folder_files=(FIFTYONE_SAMPLES,))
def read_fiftyone(folder: str | Path, captions: str = "captions", image_id: str = "image_id") -> Dataset:
    """A folder that FiftyOne exported, as FiftyOneDataset or LegacyFiftyOneDataset.

    folder: the folder, which holds ``samples.json``
    captions: the field with the captions: Classifications, whose labels are the texts, a text, or a list of texts
    image_id: the field with the image's id; where no sample has it, the name of the image's file

    Tags are a column of lists, ``tags``; fields of single values are columns, those of a caption's label columns of
    the captions. Boxes and other labels are not read.
    """
    file = Path(folder) / FIFTYONE_SAMPLES
    with reading(file):
        layout = '{"samples": [{"filepath": …, "tags": […], …}, …]}'
        samples = Records.under(read_json(file), "samples", "sample", layout)
        files = samples.ids("filepath")
        image_names = samples.values(image_id) if samples.has(image_id) else [Path(name).name for name in files]
        owners = check_ids(image_names, image_id, samples.row_name)
        check_unique(owners, "image", samples.row_name)
        groups = []
        for value in samples.optional(captions):
            labels = value.get("classifications", value) if isinstance(value, dict) else value
            entries = labels if isinstance(labels, list) else [] if labels is None else [labels]
            groups.append([entry if isinstance(entry, dict) else {"label": entry} for entry in entries])
        if not any(groups):
            fields = ", ".join(dict.fromkeys(key for row in samples.rows for key in row if not key.startswith("_")))
            raise InputError(
                f"no captions in the field {captions!r}",
                expected="Classifications, a text or a list of texts in it",
                fix=f"pass captions= one of: {fields}",
            )
        labels = [label for group in groups for label in group]
        source = [index for index, group in enumerate(groups) for _ in group]
        names = Records(labels, lambda index: f"{samples.row_name(source[index])}, a caption")
        image_of = [owners[index] for index in source]
        ids = ids_or_numbers(names.optional("caption_id"), image_of, "caption id", names.row_name)
        check_unique(ids, "caption", names.row_name)
        texts = check_texts(names.optional("label"), names.row_name)
        return Dataset(
            Path(folder).absolute().name,
            text_table(_columns(samples, ("filepath", image_id, captions, *_OTHERS)), image=owners, file=files),
            text_table(_columns(names, ("caption_id", "label", "id")), caption=ids, image=image_of, text=texts),
            home=Path(folder),
        )


def _columns(rows: Records, known_fields: tuple[str, ...]) -> dict[str, pl.Series]:
    """Tags, if there are any, and the fields of single values; those that FiftyOne keeps for itself are left out."""
    private = {key for row in rows.rows for key in row if key.startswith("_")}
    tags = [list(map(str, names)) for names in rows.lists("tags")]
    listed = {"tags": pl.Series(tags, dtype=pl.List(pl.String))} if any(tags) else {}
    free = rows.free((*known_fields, "tags", *private))
    return listed | {f"{name}_" if name in _RESERVED else name: values for name, values in free.items()}
