from crosslens.pipeline.audit.conclusions import Observed as Observed, conclude as conclude
from crosslens.pipeline.audit.results import (
    AUDIT_DATASETS as AUDIT_DATASETS,
    RESULTS as RESULTS,
    RUNS as RUNS,
    Audit as Audit,
    AuditFolder as AuditFolder,
    Skipped as Skipped,
    StageResult as StageResult,
    load_audit as load_audit,
)
from crosslens.pipeline.audit.running import Display as Display, run_audit as run_audit
from crosslens.pipeline.audit.sensitivity import (
    NoticedDefect as NoticedDefect,
    Sensitivity as Sensitivity,
    calibrate as calibrate,
    kept_sensitivities as kept_sensitivities,
)
from crosslens.pipeline.audit.sources import (
    AuditRequest as AuditRequest,
    DatasetSource as DatasetSource,
    subject_of_run as subject_of_run,
)
from crosslens.pipeline.audit.stage import (
    Condition as Condition,
    Stage as Stage,
    StageOutput as StageOutput,
    StageWork as StageWork,
    all_stages as all_stages,
    audit_stage as audit_stage,
)
from crosslens.pipeline.audit.stages import findings_of_runs as findings_of_runs
from crosslens.pipeline.caption_sets import compare_caption_sets as compare_caption_sets
from crosslens.pipeline.comparison import (
    compare as compare,
    notes_on_protocols as notes_on_protocols,
    run_labels as run_labels,
)
from crosslens.pipeline.comparison_results import (
    CaptionSets as CaptionSets,
    Comparison as Comparison,
    MetricComparison as MetricComparison,
    difference_figure as difference_figure,
)
from crosslens.pipeline.curves import (
    Curves as Curves,
    GalleryCurves as GalleryCurves,
    GalleryPoint as GalleryPoint,
    Lead as Lead,
    OrderChange as OrderChange,
    curve as curve,
    gallery_curve as gallery_curve,
    parse_counts as parse_counts,
    parse_sizes as parse_sizes,
    round_sizes as round_sizes,
)
from crosslens.pipeline.demo import Demo as Demo, require_model as require_model
from crosslens.pipeline.doctor import Diagnosis as Diagnosis, diagnose as diagnose
from crosslens.pipeline.encoding import note_skipped as note_skipped
from crosslens.pipeline.evaluation import evaluate as evaluate
from crosslens.pipeline.groups import (
    ColumnTable as ColumnTable,
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
    read_columns as read_columns,
)
from crosslens.pipeline.in_memory import (
    Metrics as Metrics,
    measure_vectors as measure_vectors,
    vector_metrics as vector_metrics,
)
from crosslens.pipeline.leaderboards import (
    Leaderboard as Leaderboard,
    dataset_label as dataset_label,
    group_runs as group_runs,
    leaderboard as leaderboard,
)
from crosslens.pipeline.options import (
    PRIMARY as PRIMARY,
    AuditOptions as AuditOptions,
    CaptionSetOptions as CaptionSetOptions,
    EvaluateArguments as EvaluateArguments,
    EvaluateOptions as EvaluateOptions,
    RobustnessOptions as RobustnessOptions,
)
from crosslens.pipeline.paired_queries import (
    CAPTION_LENGTH as CAPTION_LENGTH,
    SETS as SETS,
    GroupDifference as GroupDifference,
    PairedQueries as PairedQueries,
    group_words as group_words,
    grouping_columns as grouping_columns,
    pair_queries as pair_queries,
)
from crosslens.pipeline.panel import (
    ModelScores as ModelScores,
    calibrate_panel as calibrate_panel,
    parse_source as parse_source,
    read_panel as read_panel,
)
from crosslens.pipeline.planning.calibration import (
    calibrate_device as calibrate_device,
    measure_run as measure_run,
    memory_of as memory_of,
)
from crosslens.pipeline.planning.plan import (
    PRECISIONS as PRECISIONS,
    DeviceRates as DeviceRates,
    EvaluationPlan as EvaluationPlan,
    MeasuredRun as MeasuredRun,
    add_rates as add_rates,
    plan_evaluation as plan_evaluation,
    read_rates as read_rates,
)
from crosslens.pipeline.protocol import (
    PROTOCOLS as PROTOCOLS,
    Convention as Convention,
    Protocol as Protocol,
    ProtocolList as ProtocolList,
    ProtocolResult as ProtocolResult,
    add_protocol as add_protocol,
    find_protocol as find_protocol,
)
from crosslens.pipeline.protocol_analyses import (
    agreement_by_protocol as agreement_by_protocol,
    explain_by_protocol as explain_by_protocol,
    granularity_by_protocol as granularity_by_protocol,
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
    read_both as read_both,
    read_embeddings as read_embeddings,
    require_trusted_run as require_trusted_run,
)
from crosslens.pipeline.recipe.options import (
    InputOptions as InputOptions,
    ModelOptions as ModelOptions,
    RerankOptions as RerankOptions,
)
from crosslens.pipeline.recipe.recipe import Recipe as Recipe
from crosslens.pipeline.requirement_grammar import Requirement as Requirement, parse_requirement as parse_requirement
from crosslens.pipeline.requirements import (
    CheckedModel as CheckedModel,
    RequirementCheck as RequirementCheck,
    RequirementResult as RequirementResult,
    Sources as Sources,
    check_requirements as check_requirements,
    github_annotations as github_annotations,
    read_checked as read_checked,
    read_requirements as read_requirements,
)
from crosslens.pipeline.robustness_study.drop_table import DropTable as DropTable, drop_table as drop_table
from crosslens.pipeline.robustness_study.list_study import (
    read_runs as read_runs,
    robustness_from_runs as robustness_from_runs,
)
from crosslens.pipeline.robustness_study.sections import check_tables as check_tables
from crosslens.pipeline.robustness_study.study import ROBUSTNESS_FILE as ROBUSTNESS_FILE, Robustness as Robustness
from crosslens.pipeline.robustness_study.study_runner import robustness as robustness
from crosslens.pipeline.robustness_study.variants import read_variants as read_variants
from crosslens.pipeline.run_sections import (
    DEFINITIONS as DEFINITIONS,
    run_facts as run_facts,
    runs_table as runs_table,
    share_bars as share_bars,
    table_notes as table_notes,
    value_figure as value_figure,
)
from crosslens.pipeline.runs_side_by_side import (
    GroupChart as GroupChart,
    SideBySide as SideBySide,
    chart as chart,
    side_by_side as side_by_side,
)
