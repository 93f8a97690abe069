from crosslens.core.chat.address import (
    WORKERS as WORKERS,
    Reading as Reading,
    read_address as read_address,
    refuse_network as refuse_network,
)
from crosslens.core.chat.endpoint import (
    Cancelled as Cancelled,
    Endpoint as Endpoint,
    Message as Message,
    Tokens as Tokens,
)
from crosslens.core.chat.json_answers import InvalidAnswer as InvalidAnswer, parse_answer as parse_answer
from crosslens.core.chat.pictures import (
    MEDIA as MEDIA,
    picture_file_url as picture_file_url,
    picture_url as picture_url,
)
from crosslens.core.chat.recorded import RecordedAnswers as RecordedAnswers
from crosslens.core.chat.workers import answers_of as answers_of
from crosslens.core.dataset import (
    DATASET_LAYOUT as DATASET_LAYOUT,
    OBJECT_COLUMNS as OBJECT_COLUMNS,
    RELATION_COLUMNS as RELATION_COLUMNS,
    Card as Card,
    Dataset as Dataset,
)
from crosslens.core.embeddings import (
    EMBEDDINGS_LAYOUT as EMBEDDINGS_LAYOUT,
    Embeddings as Embeddings,
    align_embeddings as align_embeddings,
    as_array as as_array,
    check_vectors as check_vectors,
    joined_vectors as joined_vectors,
    zero_vectors as zero_vectors,
)
from crosslens.core.engine.devices import torch_device as torch_device, torch_devices as torch_devices
from crosslens.core.engine.engine import (
    Engine as Engine,
    LocalEngine as LocalEngine,
    current_engine as current_engine,
    use_engine as use_engine,
)
from crosslens.core.engine.options import EngineOptions as EngineOptions
from crosslens.core.engine.packing import missing_on_node as missing_on_node
from crosslens.core.errors import (
    ConflictError as ConflictError,
    CrosslensError as CrosslensError,
    FormatVersionError as FormatVersionError,
    InputError as InputError,
    MissingExtraError as MissingExtraError,
    Spelling as Spelling,
    UnknownNameError as UnknownNameError,
    UsageError as UsageError,
    UserCodeError as UserCodeError,
    argument as argument,
    python_spelling as python_spelling,
    reading as reading,
    where_option as where_option,
)
from crosslens.core.hashing import (
    derive_seed as derive_seed,
    file_fingerprint as file_fingerprint,
    fingerprint as fingerprint,
    random_stream as random_stream,
)
from crosslens.core.ids import (
    Ids as Ids,
    as_ids as as_ids,
    distinct_names as distinct_names,
    frozen as frozen,
    has_image_ending as has_image_ending,
    match_ids as match_ids,
    positions as positions,
    spelled_as as spelled_as,
    without_image_ending as without_image_ending,
)
from crosslens.core.input_files.arrays import (
    NPZ_ERRORS as NPZ_ERRORS,
    PackedArray as PackedArray,
    content_kind as content_kind,
    open_array as open_array,
    open_npz as open_npz,
    unpacked_size as unpacked_size,
)
from crosslens.core.input_files.image_names import (
    ImageName as ImageName,
    images_below as images_below,
    unknown_images as unknown_images,
)
from crosslens.core.input_files.json_text import (
    decode as decode,
    is_encodable as is_encodable,
    is_finite_number as is_finite_number,
    parse_json as parse_json,
    read_json_file as read_json_file,
    read_text_file as read_text_file,
)
from crosslens.core.input_files.limits import (
    ASPECT_RATIO as ASPECT_RATIO,
    CAPTION_CHARACTERS as CAPTION_CHARACTERS,
    DEVICE_BYTES as DEVICE_BYTES,
    IMAGE_BYTES as IMAGE_BYTES,
    IMAGE_PIXELS as IMAGE_PIXELS,
    LIMITS as LIMITS,
    MEMBER_BYTES as MEMBER_BYTES,
    PIXELS_IN_FLIGHT as PIXELS_IN_FLIGHT,
    UNPACKED_BYTES as UNPACKED_BYTES,
    VECTOR_BYTES as VECTOR_BYTES,
    Limit as Limit,
)
from crosslens.core.input_files.regular import (
    regular_bytes as regular_bytes,
    require_regular as require_regular,
    special_kind as special_kind,
)
from crosslens.core.input_files.remote import is_remote as is_remote, local_copy as local_copy
from crosslens.core.input_files.stored import (
    require_entries as require_entries,
)
from crosslens.core.input_files.tables import (
    read_parquet_file as read_parquet_file,
)
from crosslens.core.integrity import (
    Manifest as Manifest,
    is_verifying as is_verifying,
    sealed as sealed,
    unsealed as unsealed,
    verification as verification,
)
from crosslens.core.lazy import offer as offer
from crosslens.core.long_work import (
    Progress as Progress,
    SilentProgress as SilentProgress,
    available_cores as available_cores,
    core_limit as core_limit,
    in_threads as in_threads,
    stage as stage,
    wait_for_all as wait_for_all,
)
from crosslens.core.options import (
    Declaration as Declaration,
    Options as Options,
    check_number as check_number,
    declarations as declarations,
    option as option,
    refuse_unknown as refuse_unknown,
)
from crosslens.core.output.array_cache import (
    read_cached_array as read_cached_array,
    write_cached_array as write_cached_array,
)
from crosslens.core.output.layout import Layout as Layout, is_empty as is_empty
from crosslens.core.output.reading import being_written as being_written, read_whole as read_whole
from crosslens.core.output.resumable import ResumableFolder as ResumableFolder
from crosslens.core.output.workspace import (
    Workspace as Workspace,
    atomic_file as atomic_file,
    atomic_folder as atomic_folder,
    hold_output as hold_output,
    link_tree as link_tree,
    refuse_existing as refuse_existing,
    remove as remove,
    remove_abandoned as remove_abandoned,
    tidy_output as tidy_output,
    workspace as workspace,
    write_text as write_text,
)
from crosslens.core.parts import (
    ABSENT as ABSENT,
    ENDINGS as ENDINGS,
    FORMS as FORMS,
    PICTURES as PICTURES,
    SECTIONS as SECTIONS,
    Bars as Bars,
    Cards as Cards,
    Cell as Cell,
    Chart as Chart,
    Cloud as Cloud,
    Diffs as Diffs,
    FactList as FactList,
    Figure as Figure,
    Gauge as Gauge,
    Heat as Heat,
    Histogram as Histogram,
    Lines as Lines,
    Link as Link,
    MarkedText as MarkedText,
    Part as Part,
    PictureBox as PictureBox,
    PictureCard as PictureCard,
    Presented as Presented,
    Row as Row,
    Scatter as Scatter,
    Section as Section,
    Series as Series,
    Shares as Shares,
    Table as Table,
    Text as Text,
    TextDiff as TextDiff,
    cell_text as cell_text,
)
from crosslens.core.ranking import (
    LARGEST_WHOLE as LARGEST_WHOLE,
    UNRANKED as UNRANKED,
    RankedLists as RankedLists,
    Ranking as Ranking,
    as_top_scores as as_top_scores,
    first_inexact as first_inexact,
    inexact_score as inexact_score,
    is_inexact as is_inexact,
)
from crosslens.core.registry import Entry as Entry, Registry as Registry
from crosslens.core.relevance import (
    IMAGE_TO_TEXT as IMAGE_TO_TEXT,
    TEXT_TO_IMAGE as TEXT_TO_IMAGE,
    Relevance as Relevance,
)
from crosslens.core.rendering import (
    PAGE_WIDTH as PAGE_WIDTH,
    Grid as Grid,
    decimal as decimal,
    percent as percent,
    two_columns as two_columns,
)
from crosslens.core.run import Run as Run
from crosslens.core.runs.metric_values import (
    ASSUMED_FACTS as ASSUMED_FACTS,
    BOTH as BOTH,
    DIRECTION_LABELS as DIRECTION_LABELS,
    MetricFacts as MetricFacts,
    MetricValues as MetricValues,
    Statistic as Statistic,
    Unit as Unit,
    read_facts as read_facts,
    split_name as split_name,
    stored_facts as stored_facts,
)
from crosslens.core.runs.stored_run import (
    QUERIES_FILE as QUERIES_FILE,
    RECIPE_FILE as RECIPE_FILE,
    RUN_FILE as RUN_FILE,
    RUN_LAYOUT as RUN_LAYOUT,
    check_stored_protocol as check_stored_protocol,
)
from crosslens.core.safety.terminal import (
    printable as printable,
    printable_json as printable_json,
    printable_line as printable_line,
)
from crosslens.core.safety.trust import (
    NamedCode as NamedCode,
    TrustCode as TrustCode,
    UntrustedCodeError as UntrustedCodeError,
    code_named_by as code_named_by,
    require_trust as require_trust,
    trusting as trusting,
)
from crosslens.core.sources import (
    ONE_SOURCE as ONE_SOURCE,
    SOURCES as SOURCES,
    excluding_sources as excluding_sources,
    given_sources as given_sources,
    require_one_source as require_one_source,
)
from crosslens.core.storage import (
    FORMAT_VERSION as FORMAT_VERSION,
    HEADER_FILE as HEADER_FILE,
    cache_folder as cache_folder,
    folder_layout as folder_layout,
    id_table as id_table,
    json_form as json_form,
    mapped_array as mapped_array,
    parquet_bytes as parquet_bytes,
    read_folder as read_folder,
    read_header as read_header,
    read_manifest as read_manifest,
    write_folder as write_folder,
    write_header as write_header,
    write_parts as write_parts,
)
from crosslens.core.user_code import (
    TRACEBACK_VARIABLE as TRACEBACK_VARIABLE,
    as_user_error as as_user_error,
    call_function as call_function,
    is_plugin_loaded as is_plugin_loaded,
    is_user_code as is_user_code,
    load_module as load_module,
    load_plugin as load_plugin,
    loaded_plugins as loaded_plugins,
    plugin_hashes as plugin_hashes,
    wrong_code as wrong_code,
)
from crosslens.core.vectors.blocks import (
    ArrayBlocks as ArrayBlocks,
    FlatBlocks as FlatBlocks,
    PatchedBlocks as PatchedBlocks,
    SelectedBlocks as SelectedBlocks,
    ShardedBlocks as ShardedBlocks,
    VectorBlocks as VectorBlocks,
    as_blocks as as_blocks,
    block_parts as block_parts,
    check_blocks as check_blocks,
    each_block as each_block,
    select_rows as select_rows,
)
