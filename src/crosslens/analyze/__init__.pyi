from crosslens.analyze.agreement import HumanAgreement as HumanAgreement, measure_agreement as measure_agreement
from crosslens.analyze.caption_polysemy.clusters import (
    ImageCluster as ImageCluster,
    PolysemyClusters as PolysemyClusters,
    cluster_images as cluster_images,
)
from crosslens.analyze.caption_polysemy.measure import (
    NEIGHBOURHOOD_SIZES as NEIGHBOURHOOD_SIZES,
    CaptionDiversity as CaptionDiversity,
    Polysemy as Polysemy,
    check_sizes as check_sizes,
    measure_caption_diversity as measure_caption_diversity,
    polysemy as polysemy,
)
from crosslens.analyze.caption_polysemy.study import (
    MeasuredDataset as MeasuredDataset,
    PolysemyStudy as PolysemyStudy,
    kernel_density as kernel_density,
)
from crosslens.analyze.categories import (
    ALL as ALL,
    CATEGORY as CATEGORY,
    NO_CATEGORY as NO_CATEGORY,
    TOTAL as TOTAL,
    Categories as Categories,
    CategoryResults as CategoryResults,
    ClassificationPairs as ClassificationPairs,
    category_results as category_results,
)
from crosslens.analyze.classification import classification_pairs as classification_pairs
from crosslens.analyze.discriminability import (
    DatasetDiscriminability as DatasetDiscriminability,
    Discriminability as Discriminability,
    DiscriminabilityComparison as DiscriminabilityComparison,
    compare_discriminability as compare_discriminability,
    dataset_discriminability as dataset_discriminability,
    default_temperature as default_temperature,
    entropy as entropy,
    entropy_histogram as entropy_histogram,
    measure_discriminability as measure_discriminability,
)
from crosslens.analyze.farthest import farthest_points as farthest_points
from crosslens.analyze.granularity import (
    FEATURES as FEATURES,
    Granularity as Granularity,
    GranularityComparison as GranularityComparison,
    compare_granularity as compare_granularity,
    measure_granularity as measure_granularity,
)
from crosslens.analyze.hard_negatives.cases import (
    ACCURACY as ACCURACY,
    HardNegatives as HardNegatives,
    hard_negatives_of as hard_negatives_of,
    perturbed_negatives as perturbed_negatives,
)
from crosslens.analyze.hard_negatives.reading import load_hard_negatives as load_hard_negatives
from crosslens.analyze.hard_negatives.result import (
    CategoryAccuracy as CategoryAccuracy,
    CategoryDifference as CategoryDifference,
    HardNegativesComparison as HardNegativesComparison,
    HardNegativesResult as HardNegativesResult,
    HardNegativesStudy as HardNegativesStudy,
    accuracy as accuracy,
    category_label as category_label,
    compare_hard_negatives as compare_hard_negatives,
)
from crosslens.analyze.hard_negatives.scoring import score_hard_negatives as score_hard_negatives
from crosslens.analyze.label_quality.contradictions import contradicts as contradicts
from crosslens.analyze.label_quality.look import (
    assess_label_quality as assess_label_quality,
    look_at_labels as look_at_labels,
)
from crosslens.analyze.label_quality.review import (
    REASONS as REASONS,
    REVIEW_ENDINGS as REVIEW_ENDINGS,
    LabelQuality as LabelQuality,
    ReviewedLabels as ReviewedLabels,
    apply_review as apply_review,
)
from crosslens.analyze.missing_positives import (
    MissingPositives as MissingPositives,
    check_similarity as check_similarity,
    find_missing_positives as find_missing_positives,
    held_out_similarity as held_out_similarity,
    is_denied as is_denied,
)
from crosslens.analyze.near_duplicates import (
    HASH_BITS as HASH_BITS,
    DuplicateEvidence as DuplicateEvidence,
    NearDuplicates as NearDuplicates,
    hash_files as hash_files,
    unit_vectors as unit_vectors,
    words_of as words_of,
)
from crosslens.analyze.near_twins import (
    TWIN as TWIN,
    NearTwins as NearTwins,
    RelatedPictures as RelatedPictures,
    changed_sentence as changed_sentence,
    changed_words as changed_words,
    look_at_twins as look_at_twins,
)
from crosslens.analyze.neighbours import (
    ApproximateSearch as ApproximateSearch,
    Neighbours as Neighbours,
    nearest_items as nearest_items,
)
from crosslens.analyze.options import (
    DEFAULT_LEVELS as DEFAULT_LEVELS,
    DIFFICULTY as DIFFICULTY,
    WEB_THRESHOLDS as WEB_THRESHOLDS,
    CalibrationOptions as CalibrationOptions,
    CaseOptions as CaseOptions,
    ClusterOptions as ClusterOptions,
    DiscriminabilityOptions as DiscriminabilityOptions,
    JudgingOptions as JudgingOptions,
    LabelSettings as LabelSettings,
    entropy_band as entropy_band,
)
from crosslens.analyze.pair_difficulty.assignment import (
    Difficulty as Difficulty,
    difficulty as difficulty,
    read_difficulty as read_difficulty,
)
from crosslens.analyze.pair_difficulty.filter_loss import (
    FilterLoss as FilterLoss,
    measure_filter_loss as measure_filter_loss,
)
from crosslens.analyze.pair_difficulty.study import (
    DifficultyStudy as DifficultyStudy,
    Stability as Stability,
    measure_left_out as measure_left_out,
    measure_stability as measure_stability,
)
from crosslens.analyze.pair_difficulty.thresholds import (
    Calibration as Calibration,
    calibrate as calibrate,
    read_thresholds as read_thresholds,
    write_thresholds as write_thresholds,
)
from crosslens.analyze.pair_scores import (
    ImageCaptionPairs as ImageCaptionPairs,
    check_table_file as check_table_file,
    write_table as write_table,
)
from crosslens.analyze.probes.probe import Probes as Probes, probe_captions as probe_captions
from crosslens.analyze.scorers import (
    CLIPSCORES as CLIPSCORES,
    ScorerComparison as ScorerComparison,
    clipscore as clipscore,
    compare_scorers as compare_scorers,
)
from crosslens.analyze.soundness.result import Soundness as Soundness, look_into_inputs as look_into_inputs
from crosslens.analyze.subject import (
    ANALYSES as ANALYSES,
    Analysis as Analysis,
    EncodeTexts as EncodeTexts,
    Planted as Planted,
    Subject as Subject,
    analysis as analysis,
)
from crosslens.analyze.weak_groups import (
    NO_VALUE as NO_VALUE,
    ObjectSizes as ObjectSizes,
    QueryGroup as QueryGroup,
    WeakGroups as WeakGroups,
    group_columns as group_columns,
    label_groups as label_groups,
    look_at_groups as look_at_groups,
    look_at_object_sizes as look_at_object_sizes,
    makes_groups as makes_groups,
    with_misses as with_misses,
)
