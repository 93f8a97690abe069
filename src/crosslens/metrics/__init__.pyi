from crosslens.metrics.computation import (
    Observations as Observations,
    compute as compute,
    compute_across as compute_across,
    measure as measure,
    observations as observations,
    parts_across as parts_across,
    ranks_of as ranks_of,
)
from crosslens.metrics.families.graded_metrics import OWN_SCORES as OWN_SCORES
from crosslens.metrics.family import (
    METRICS as METRICS,
    RSUM_CUTOFFS as RSUM_CUTOFFS,
    Family as Family,
    MetricSpec as MetricSpec,
    Option as Option,
    bounds_of as bounds_of,
    facts_of as facts_of,
    family_of as family_of,
    format_count as format_count,
    format_figure as format_figure,
    metric as metric,
    metric_figure as metric_figure,
    read_spec as read_spec,
    spec_of as spec_of,
    unit_of as unit_of,
    unit_sentence as unit_sentence,
)
from crosslens.metrics.graded import GainMatrix as GainMatrix, GradedRanking as GradedRanking
from crosslens.metrics.larger_galleries import LargerGalleries as LargerGalleries
from crosslens.metrics.relevant_ranks import TIES as TIES, RelevantRanks as RelevantRanks, Ties as Ties
from crosslens.metrics.request import (
    DEFAULT_METRICS as DEFAULT_METRICS,
    MetricRequest as MetricRequest,
    dataset_name as dataset_name,
    dataset_revision as dataset_revision,
    graded_requests as graded_requests,
    ideal_depth as ideal_depth,
    list_depth as list_depth,
    matching_names as matching_names,
    metric_names as metric_names,
    metric_plugins as metric_plugins,
    option_values as option_values,
    parse_metric as parse_metric,
    parse_metrics as parse_metrics,
    requests_naming as requests_naming,
    select_metrics as select_metrics,
    split_metrics as split_metrics,
)
from crosslens.metrics.sub_galleries import SubGalleries as SubGalleries, require_expectation as require_expectation
