from crosslens.analyze import (
    assess_label_quality as label_quality,
    category_results as category_results,
    compare_scorers as compare_scorers,
    dataset_discriminability as discriminability,
    find_missing_positives as missing_positives,
    measure_difficulty as difficulty,
    measure_polysemy as polysemy,
    read_difficulty as read_difficulty,
    score_hard_negatives as hard_negatives,
)
from crosslens.comparisons import (
    Comparison as Comparison,
    Leaderboard as Leaderboard,
    compare as compare,
    leaderboard as leaderboard,
)
from crosslens.core import CrosslensError as CrosslensError, InputError as InputError, load_plugin as load_plugin
from crosslens.data import (
    describe as describe,
    load_dataset as load_dataset,
    read_judgements as read_judgements,
    read_qrels as read_qrels,
    read_run as read_run,
    write_dataset as write_dataset,
    write_qrels as write_qrels,
    write_run as write_run,
)
from crosslens.engine import use_engine as use_engine
from crosslens.explanations import (
    concept_metrics as concept_metrics,
    find_counterfactual as counterfactual,
    find_counterfactuals as counterfactuals,
)
from crosslens.metrics import METRICS as METRICS, metric as metric, parse_metrics as parse_metrics
from crosslens.perturbations import perturb as perturb
from crosslens.pipeline import (
    Robustness as Robustness,
    agreement_by_protocol as agreement,
    chart as plot,
    compare_caption_sets as compare_caption_sets,
    drop_table as robustness_table,
    evaluate as evaluate,
    explain_by_protocol as explain,
    gallery_curve as gallery_curve,
    granularity_by_protocol as granularity,
    group_metrics as by,
    robustness as robustness,
    robustness_from_runs as robustness_from_runs,
)
from crosslens.planning import plan_evaluation as plan
from crosslens.rank import rank_both as rank_both
from crosslens.report import (
    audit as audit,
    calibrate as calibrate,
    read_results as read_results,
    write_report as write_report,
)
from crosslens.similarity import relevance_matrix as relevance_matrix, relevance_pairs as relevance_pairs
from crosslens.statistics import match_threshold as match_threshold
from crosslens.storage import verification as verification
from crosslens.values import (
    Card as Card,
    Dataset as Dataset,
    Embeddings as Embeddings,
    MetricValues as MetricValues,
    RankedLists as RankedLists,
    Ranking as Ranking,
    Relevance as Relevance,
    Run as Run,
)

# Type checkers take `X as X` for exported; names that differ inside have to be listed.
__all__ = [
    "agreement",
    "by",
    "counterfactual",
    "counterfactuals",
    "difficulty",
    "discriminability",
    "explain",
    "granularity",
    "hard_negatives",
    "label_quality",
    "missing_positives",
    "plan",
    "plot",
    "polysemy",
    "robustness_table",
]
__version__: str
