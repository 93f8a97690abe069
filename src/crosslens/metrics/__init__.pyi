from crosslens.metrics.computation import (
    Observations as Observations,
    compute as compute,
    compute_across as compute_across,
    measure as measure,
    observations as observations,
    parts_across as parts_across,
    ranks_of as ranks_of,
)
from crosslens.metrics.coverage import TIES as TIES, Ties as Ties
from crosslens.metrics.families.graded_metrics import OWN_SCORES as OWN_SCORES
from crosslens.metrics.families.rank_metrics import RSUM_CUTOFFS as RSUM_CUTOFFS
from crosslens.metrics.family import (
    METRICS as METRICS,
    Family as Family,
    MetricSpec as MetricSpec,
    Option as Option,
    family_of as family_of,
    metric as metric,
    read_spec as read_spec,
)
from crosslens.metrics.formatting import (
    bounds_of as bounds_of,
    facts_of as facts_of,
    format_count as format_count,
    format_figure as format_figure,
    format_interval as format_interval,
    metric_figure as metric_figure,
    spec_of as spec_of,
    unit_of as unit_of,
    unit_sentence as unit_sentence,
)
from crosslens.metrics.gain_matrix import GainMatrix as GainMatrix
from crosslens.metrics.graded import GradedRanking as GradedRanking
from crosslens.metrics.relevant_ranks import RelevantRanks as RelevantRanks
from crosslens.metrics.request import (
    DEFAULT_METRICS as DEFAULT_METRICS,
    MetricRequest as MetricRequest,
    matching_names as matching_names,
    metric_plugins as metric_plugins,
    parse_metric as parse_metric,
    parse_metrics as parse_metrics,
    split_metrics as split_metrics,
)
from crosslens.metrics.requirements import (
    graded_requests as graded_requests,
    ideal_depth as ideal_depth,
    list_depth as list_depth,
    option_values as option_values,
    requests_naming as requests_naming,
)
from crosslens.metrics.selection import (
    dataset_name as dataset_name,
    dataset_revision as dataset_revision,
    metric_names as metric_names,
    select_metrics as select_metrics,
)
from crosslens.metrics.sub_galleries.expectations import (
    SubGalleries as SubGalleries,
    require_expectation as require_expectation,
)
from crosslens.metrics.sub_galleries.larger import (
    EXTRAPOLATED as EXTRAPOLATED,
    LargerGalleries as LargerGalleries,
    require_extrapolation as require_extrapolation,
)
