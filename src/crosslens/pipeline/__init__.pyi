from crosslens.pipeline.caption_sets import compare_caption_sets as compare_caption_sets
from crosslens.pipeline.curves import (
    GalleryCurves as GalleryCurves,
    GalleryPoint as GalleryPoint,
    Lead as Lead,
    OrderChange as OrderChange,
    curve as curve,
    gallery_curve as gallery_curve,
    parse_counts as parse_counts,
    parse_sizes as parse_sizes,
)
from crosslens.pipeline.evaluations.encoding import load_dual_encoder as load_dual_encoder, note_skipped as note_skipped
from crosslens.pipeline.evaluations.evaluation import evaluate as evaluate
from crosslens.pipeline.evaluations.in_memory import (
    Metrics as Metrics,
    measure_vectors as measure_vectors,
    vector_metrics as vector_metrics,
)
from crosslens.pipeline.evaluations.inputs import TEXT_TO_TEXT as TEXT_TO_TEXT, align_both as align_both
from crosslens.pipeline.evaluations.sections import (
    DEFINITIONS as DEFINITIONS,
    run_facts as run_facts,
    runs_table as runs_table,
    value_figure as value_figure,
)
from crosslens.pipeline.grouping.groups import (
    GroupedComparison as GroupedComparison,
    GroupedMetrics as GroupedMetrics,
    GroupedTable as GroupedTable,
    add_columns as add_columns,
    column_of as column_of,
    compare_groups as compare_groups,
    drops_by as drops_by,
    failures_by as failures_by,
    group_members as group_members,
    group_metrics as group_metrics,
    group_names as group_names,
    groupable_metrics as groupable_metrics,
    over_queries as over_queries,
    over_same_queries as over_same_queries,
    read_columns as read_columns,
)
from crosslens.pipeline.grouping.side_by_side import (
    GroupChart as GroupChart,
    SideBySide as SideBySide,
    plot as plot,
    side_by_side as side_by_side,
)
from crosslens.pipeline.options import (
    AuditOptions as AuditOptions,
    CaptionSetOptions as CaptionSetOptions,
    EvaluateArguments as EvaluateArguments,
    EvaluateOptions as EvaluateOptions,
    RobustnessOptions as RobustnessOptions,
)
from crosslens.pipeline.panel import (
    ModelScores as ModelScores,
    calibrate_panel as calibrate_panel,
    parse_source as parse_source,
    read_panel as read_panel,
)
from crosslens.pipeline.protocols.analyses import agreement as agreement, explain as explain, granularity as granularity
from crosslens.pipeline.protocols.protocol import (
    PROTOCOLS as PROTOCOLS,
    Convention as Convention,
    Protocol as Protocol,
    ProtocolList as ProtocolList,
    ProtocolResult as ProtocolResult,
    add_protocol as add_protocol,
    find_protocol as find_protocol,
)
from crosslens.pipeline.recipe.execute import (
    RunVectors as RunVectors,
    recipe_of_run as recipe_of_run,
    run_recipe as run_recipe,
    vectors_key as vectors_key,
    vectors_of_run as vectors_of_run,
    without_vectors as without_vectors,
)
from crosslens.pipeline.recipe.inputs import (
    evaluated_as_known as evaluated_as_known,
    load_inputs as load_inputs,
    read_both as read_both,
    read_embeddings as read_embeddings,
    require_trusted_models as require_trusted_models,
    require_trusted_run as require_trusted_run,
)
from crosslens.pipeline.recipe.options import (
    InputOptions as InputOptions,
    ModelOptions as ModelOptions,
    RerankOptions as RerankOptions,
)
from crosslens.pipeline.recipe.recipe import Recipe as Recipe
from crosslens.pipeline.robustness_study.drop_table import DropTable as DropTable, drop_table as drop_table
from crosslens.pipeline.robustness_study.list_study import (
    read_runs as read_runs,
    robustness_from_runs as robustness_from_runs,
)
from crosslens.pipeline.robustness_study.sections import (
    changed_captions as changed_captions,
    check_tables as check_tables,
    drop_strip as drop_strip,
)
from crosslens.pipeline.robustness_study.study import (
    ROBUSTNESS_FILE as ROBUSTNESS_FILE,
    Robustness as Robustness,
    folder_name as folder_name,
)
from crosslens.pipeline.robustness_study.study_runner import robustness as robustness
from crosslens.pipeline.robustness_study.variants import ORIGINAL as ORIGINAL, read_variants as read_variants
