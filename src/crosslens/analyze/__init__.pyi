from crosslens.analyze.agreement.measure import (
    HumanAgreement as HumanAgreement,
    measure_agreement as measure_agreement,
)
from crosslens.analyze.approximate import ApproximateSearch as ApproximateSearch
from crosslens.analyze.caption_features import (
    CaptionFeatures as CaptionFeatures,
)
from crosslens.analyze.categories.labels import (
    NO_CATEGORY as NO_CATEGORY,
    TOTAL as TOTAL,
    Categories as Categories,
)
from crosslens.analyze.categories.negatives import (
    ClassificationPairs as ClassificationPairs,
    classification_pairs as classification_pairs,
)
from crosslens.analyze.categories.results import (
    CategoryResults as CategoryResults,
    category_results as category_results,
)
from crosslens.analyze.categories.retrieval import (
    ALL as ALL,
    CATEGORY as CATEGORY,
    RETRIEVAL_METRICS as RETRIEVAL_METRICS,
)
from crosslens.analyze.difficulty.assignment import (
    Difficulty as Difficulty,
    check_table_file as check_table_file,
    measure_difficulty as measure_difficulty,
    read_difficulty as read_difficulty,
    write_table as write_table,
)
from crosslens.analyze.difficulty.calibration import (
    THRESHOLDS_FILE as THRESHOLDS_FILE,
    Calibration as Calibration,
    calibrate as calibrate,
    read_thresholds as read_thresholds,
    write_thresholds as write_thresholds,
)
from crosslens.analyze.difficulty.filter_loss import (
    FilterLoss as FilterLoss,
    measure_filter_loss as measure_filter_loss,
)
from crosslens.analyze.difficulty.levels import DEFAULT_LEVELS as DEFAULT_LEVELS, DIFFICULTY as DIFFICULTY
from crosslens.analyze.difficulty.options import (
    WEB_THRESHOLDS as WEB_THRESHOLDS,
    CalibrationOptions as CalibrationOptions,
)
from crosslens.analyze.difficulty.sections import DifficultyStudy as DifficultyStudy
from crosslens.analyze.difficulty.stability import (
    LeftOut as LeftOut,
    Stability as Stability,
    measure_left_out as measure_left_out,
    measure_stability as measure_stability,
)
from crosslens.analyze.difficulty.threshold import (
    PrecisionRecall as PrecisionRecall,
    match_threshold as match_threshold,
    precision_recall as precision_recall,
)
from crosslens.analyze.discriminability.dataset import (
    DatasetDiscriminability as DatasetDiscriminability,
    DiscriminabilityComparison as DiscriminabilityComparison,
    compare_discriminability as compare_discriminability,
    dataset_discriminability as dataset_discriminability,
)
from crosslens.analyze.discriminability.measure import (
    Discriminability as Discriminability,
    default_temperature as default_temperature,
    entropy as entropy,
    entropy_histogram as entropy_histogram,
    measure_discriminability as measure_discriminability,
)
from crosslens.analyze.discriminability.options import (
    DiscriminabilityOptions as DiscriminabilityOptions,
    entropy_band as entropy_band,
)
from crosslens.analyze.farthest import farthest_points as farthest_points
from crosslens.analyze.granularity.features import FEATURES as FEATURES
from crosslens.analyze.granularity.measure import (
    Granularity as Granularity,
    GranularityComparison as GranularityComparison,
    compare_granularity as compare_granularity,
    measure_granularity as measure_granularity,
)
from crosslens.analyze.hard_negatives.cases import (
    ACCURACY as ACCURACY,
    HardNegatives as HardNegatives,
    hard_negatives_of as hard_negatives_of,
)
from crosslens.analyze.hard_negatives.evaluate import score_hard_negatives as score_hard_negatives
from crosslens.analyze.hard_negatives.options import CaseOptions as CaseOptions, JudgingOptions as JudgingOptions
from crosslens.analyze.hard_negatives.outcomes import (
    ALL_CASES as ALL_CASES,
    MACRO as MACRO,
    ROUNDING as ROUNDING,
    CategoryAccuracy as CategoryAccuracy,
)
from crosslens.analyze.hard_negatives.perturbed import perturbed_negatives as perturbed_negatives
from crosslens.analyze.hard_negatives.reading import load_hard_negatives as load_hard_negatives
from crosslens.analyze.hard_negatives.result import (
    CategoryDifference as CategoryDifference,
    HardNegativesComparison as HardNegativesComparison,
    HardNegativesResult as HardNegativesResult,
    compare_hard_negatives as compare_hard_negatives,
)
from crosslens.analyze.hard_negatives.sections import (
    HardNegativesStudy as HardNegativesStudy,
    accuracy as accuracy,
    category_label as category_label,
)
from crosslens.analyze.label_quality.assess import assess_label_quality as assess_label_quality
from crosslens.analyze.label_quality.duplicates import words_of as words_of
from crosslens.analyze.label_quality.review import (
    LabelQuality as LabelQuality,
    ReviewedLabels as ReviewedLabels,
    apply_review as apply_review,
    check_review_file as check_review_file,
)
from crosslens.analyze.label_quality.settings import LabelSettings as LabelSettings
from crosslens.analyze.label_quality.signals import REASONS as REASONS, VERDICTS as VERDICTS
from crosslens.analyze.missing_positives.search import (
    MissingPositives as MissingPositives,
    find_missing_positives as find_missing_positives,
    held_out_similarity as held_out_similarity,
)
from crosslens.analyze.near_duplicates import (
    HASH_BITS as HASH_BITS,
    DuplicateEvidence as DuplicateEvidence,
    NearDuplicates as NearDuplicates,
    hash_files as hash_files,
    unit_vectors as unit_vectors,
)
from crosslens.analyze.neighbours import Neighbours as Neighbours, nearest_items as nearest_items
from crosslens.analyze.pair_scores import ImageCaptionPairs as ImageCaptionPairs
from crosslens.analyze.polysemy.clusters import (
    ImageCluster as ImageCluster,
    PolysemyClusters as PolysemyClusters,
    cluster_images as cluster_images,
)
from crosslens.analyze.polysemy.co_captions import (
    CaptionDiversity as CaptionDiversity,
    PairValues as PairValues,
    measure_caption_diversity as measure_caption_diversity,
)
from crosslens.analyze.polysemy.measure import (
    Polysemy as Polysemy,
    check_sizes as check_sizes,
    measure_polysemy as measure_polysemy,
)
from crosslens.analyze.polysemy.options import ClusterOptions as ClusterOptions
from crosslens.analyze.polysemy.sections import (
    NEIGHBOURHOOD_SIZES as NEIGHBOURHOOD_SIZES,
    MeasuredDataset as MeasuredDataset,
    PolysemyStudy as PolysemyStudy,
    kernel_density as kernel_density,
)
from crosslens.analyze.scorers.comparison import (
    ScorerComparison as ScorerComparison,
    compare_scorers as compare_scorers,
)
from crosslens.analyze.scorers.cosine_forms import CLIPSCORES as CLIPSCORES, clipscore as clipscore
