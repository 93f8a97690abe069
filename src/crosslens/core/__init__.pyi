from crosslens.core.dataset import (
    OBJECT_COLUMNS as OBJECT_COLUMNS,
    RELATION_COLUMNS as RELATION_COLUMNS,
    Card as Card,
    Dataset as Dataset,
)
from crosslens.core.embeddings import Embeddings as Embeddings, check_vectors as check_vectors
from crosslens.core.errors import (
    ConflictError as ConflictError,
    CrosslensError as CrosslensError,
    FormatVersionError as FormatVersionError,
    InputError as InputError,
    MissingExtraError as MissingExtraError,
    Spelling as Spelling,
    UnknownNameError as UnknownNameError,
    UsageError as UsageError,
    argument as argument,
    python_spelling as python_spelling,
    reading as reading,
)
from crosslens.core.hashing import (
    derive_seed as derive_seed,
    file_fingerprint as file_fingerprint,
    fingerprint as fingerprint,
    random_stream as random_stream,
)
from crosslens.core.ids import Ids as Ids, as_ids as as_ids, frozen as frozen, positions as positions
from crosslens.core.lazy import offer as offer
from crosslens.core.long_work import (
    Progress as Progress,
    SilentProgress as SilentProgress,
    available_cores as available_cores,
    stage as stage,
    wait_for_all as wait_for_all,
)
from crosslens.core.options import (
    Declaration as Declaration,
    Options as Options,
    declarations as declarations,
    option as option,
    refuse_unknown as refuse_unknown,
)
from crosslens.core.ranking import (
    UNRANKED as UNRANKED,
    RankedLists as RankedLists,
    Ranking as Ranking,
    as_top_scores as as_top_scores,
)
from crosslens.core.registry import Entry as Entry, Registry as Registry
from crosslens.core.relevance import (
    IMAGE_TO_TEXT as IMAGE_TO_TEXT,
    TEXT_TO_IMAGE as TEXT_TO_IMAGE,
    Relevance as Relevance,
)
from crosslens.core.rendering import (
    PAGE_WIDTH as PAGE_WIDTH,
    RENDERERS as RENDERERS,
    Grid as Grid,
    Printable as Printable,
    two_columns as two_columns,
)
from crosslens.core.run import (
    BOTH as BOTH,
    QUERIES_FILE as QUERIES_FILE,
    RECIPE_FILE as RECIPE_FILE,
    RUN_FILE as RUN_FILE,
    MetricValues as MetricValues,
    Run as Run,
    Statistic as Statistic,
    split_name as split_name,
)
from crosslens.core.storage import (
    FORMAT_VERSION as FORMAT_VERSION,
    HEADER_FILE as HEADER_FILE,
    PARTIAL as PARTIAL,
    atomic_file as atomic_file,
    atomic_folder as atomic_folder,
    cache_folder as cache_folder,
    id_table as id_table,
    json_form as json_form,
    read_folder as read_folder,
    read_header as read_header,
    refuse_foreign_files as refuse_foreign_files,
    remove_partial_files as remove_partial_files,
    replace_folder as replace_folder,
    write_folder as write_folder,
    write_text as write_text,
)
