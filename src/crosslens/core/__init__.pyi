from crosslens.core.addresses import (
    ADDRESS as ADDRESS,
    address_of as address_of,
    host_of as host_of,
    is_hidden as is_hidden,
    is_remote as is_remote,
    safe_cause as safe_cause,
    without_secrets as without_secrets,
)
from crosslens.core.cores import (
    available_cores as available_cores,
    core_limit as core_limit,
    limit_cores as limit_cores,
)
from crosslens.core.errors import (
    ConflictError as ConflictError,
    CrosslensError as CrosslensError,
    FormatVersionError as FormatVersionError,
    InputError as InputError,
    MetricNameWarning as MetricNameWarning,
    MissingExtraError as MissingExtraError,
    UnknownNameError as UnknownNameError,
    UsageError as UsageError,
    argument as argument,
    needs_extra as needs_extra,
    reading as reading,
    where_option as where_option,
)
from crosslens.core.findings import (
    FINDING_KINDS as FINDING_KINDS,
    STATED_SIZE as STATED_SIZE,
    Certainty as Certainty,
    Effect as Effect,
    Evidence as Evidence,
    Finding as Finding,
    Observation as Observation,
    Precision as Precision,
    finding_kind as finding_kind,
)
from crosslens.core.lazy import lazy_names as lazy_names
from crosslens.core.options import (
    GROUPS as GROUPS,
    METHOD as METHOD,
    READER as READER,
    Declaration as Declaration,
    Options as Options,
    accepts_options as accepts_options,
    check_number as check_number,
    declarations as declarations,
    option as option,
    refuse_other_keywords as refuse_other_keywords,
    refuse_unknown as refuse_unknown,
)
from crosslens.core.parts.cards import (
    Cards as Cards,
    Diffs as Diffs,
    Facet as Facet,
    FacetValue as FacetValue,
    MarkedText as MarkedText,
    PictureBox as PictureBox,
    PictureCard as PictureCard,
    QueryCard as QueryCard,
    TextDiff as TextDiff,
)
from crosslens.core.parts.charts import (
    Bars as Bars,
    Chart as Chart,
    Cloud as Cloud,
    Heat as Heat,
    Histogram as Histogram,
    Interval as Interval,
    Intervals as Intervals,
    Lines as Lines,
    Multiple as Multiple,
    Row as Row,
    Scatter as Scatter,
    Series as Series,
    Shares as Shares,
    SmallMultiples as SmallMultiples,
    Tone as Tone,
)
from crosslens.core.parts.presented import (
    ENDINGS as ENDINGS,
    FORMS as FORMS,
    PICTURES as PICTURES,
    SECTIONS as SECTIONS,
    Presented as Presented,
)
from crosslens.core.parts.sections import (
    AnsweredQuestion as AnsweredQuestion,
    Answers as Answers,
    Beside as Beside,
    Composed as Composed,
    EvidenceList as EvidenceList,
    Folded as Folded,
    PairedBar as PairedBar,
    PairedBars as PairedBars,
    Part as Part,
    QueryCards as QueryCards,
    Section as Section,
    flat as flat,
)
from crosslens.core.parts.stored import restored_part as restored_part, stored_part as stored_part
from crosslens.core.parts.tables import (
    ABSENT as ABSENT,
    Cell as Cell,
    Code as Code,
    FactList as FactList,
    Figure as Figure,
    Link as Link,
    Table as Table,
    Text as Text,
    cell_text as cell_text,
)
from crosslens.core.registry import Entry as Entry, Registry as Registry
from crosslens.core.rendering import (
    PAGE_WIDTH as PAGE_WIDTH,
    Grid as Grid,
    Notify as Notify,
    decimal as decimal,
    markdown_text as markdown_text,
    merged_notes as merged_notes,
    percent as percent,
    printable as printable,
    printable_json as printable_json,
    printable_line as printable_line,
    to_stderr as to_stderr,
    two_columns as two_columns,
    well_formed as well_formed,
)
from crosslens.core.user_code import (
    TRACEBACK_VARIABLE as TRACEBACK_VARIABLE,
    as_user_error as as_user_error,
    call_function as call_function,
    is_plugin_loaded as is_plugin_loaded,
    load_module as load_module,
    load_plugin as load_plugin,
    loaded_plugins as loaded_plugins,
    plugin_hashes as plugin_hashes,
    wrong_code as wrong_code,
)
from crosslens.core.value_types import ValueType as ValueType
