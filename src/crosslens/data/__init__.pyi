from crosslens.data.description import DatasetDescription as DatasetDescription, Spread as Spread, describe as describe
from crosslens.data.files import (
    existing_file as existing_file,
    format_stem as format_stem,
    format_suffix as format_suffix,
    read_bytes as read_bytes,
    read_json as read_json,
    read_lines as read_lines,
    read_text as read_text,
    writing_bytes as writing_bytes,
)
from crosslens.data.images import (
    MEMBER_SEPARATOR as MEMBER_SEPARATOR,
    REPAIR_IMAGE as REPAIR_IMAGE,
    PixelBudget as PixelBudget,
    crop_path as crop_path,
    image_files as image_files,
    outer_file as outer_file,
    read_image_bytes as read_image_bytes,
    readable_picture as readable_picture,
)
from crosslens.data.judgements import (
    JUDGEMENT_SETS as JUDGEMENT_SETS,
    Judgements as Judgements,
    image_names as image_names,
    read_eccv as read_eccv,
    read_judgements as read_judgements,
    read_relevance as read_relevance,
    relevance_files as relevance_files,
    where_coco_ids_are as where_coco_ids_are,
)
from crosslens.data.known import (
    DATA_FOLDER as DATA_FOLDER,
    KNOWN as KNOWN,
    Download as Download,
    KnownDataset as KnownDataset,
    KnownFiles as KnownFiles,
    data_roots as data_roots,
    find_known as find_known,
    is_known as is_known,
    known_dataset as known_dataset,
    look_for_known as look_for_known,
    require_captions as require_captions,
    where_to_get as where_to_get,
)
from crosslens.data.loading import (
    READERS as READERS,
    JsonFile as JsonFile,
    ReaderOption as ReaderOption,
    is_dataset_name as is_dataset_name,
    is_dataset_path as is_dataset_path,
    load_dataset as load_dataset,
    path_options as path_options,
    reader_options as reader_options,
)
from crosslens.data.rankings import (
    read_qrels as read_qrels,
    read_run as read_run,
    write_qrels as write_qrels,
    write_run as write_run,
)
from crosslens.data.readers.embedded import read_precomputed as read_precomputed
from crosslens.data.rows import (
    PLAIN_SUFFIXES as PLAIN_SUFFIXES,
    REGION_SIDES as REGION_SIDES,
    Records as Records,
    RowName as RowName,
    as_numbers as as_numbers,
    by_row as by_row,
    check_ids as check_ids,
    check_known as check_known,
    check_unique as check_unique,
    on_lines as on_lines,
    read_records as read_records,
    read_table as read_table,
    require_column as require_column,
)
from crosslens.data.variants import (
    EXTRA_IMAGES as EXTRA_IMAGES,
    captions_by as captions_by,
    captions_where as captions_where,
    read_image_names as read_image_names,
    read_images as read_images,
    rename_images as rename_images,
)
from crosslens.data.vectors import (
    ARRAY_SUFFIXES as ARRAY_SUFFIXES,
    SHARD_SUFFIXES as SHARD_SUFFIXES,
    SIDE_FOLDERS as SIDE_FOLDERS,
    PackedBlocks as PackedBlocks,
    Side as Side,
    StoredVectors as StoredVectors,
    read_array as read_array,
    read_array_and_ids as read_array_and_ids,
    read_vectors as read_vectors,
    read_vectors_and_ids as read_vectors_and_ids,
    vector_files as vector_files,
)
from crosslens.data.writers.annotations import VISUAL_GENOME_LAYOUT as VISUAL_GENOME_LAYOUT
from crosslens.data.writing import WRITERS as WRITERS, left_out as left_out, write_dataset as write_dataset
