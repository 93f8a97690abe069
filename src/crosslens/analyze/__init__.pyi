from crosslens.analyze.agreement.measure import (
    ALL_PAIRS as ALL_PAIRS,
    BINARY as BINARY,
    COEFFICIENT_LABELS as COEFFICIENT_LABELS,
    NOT_A_REFERENCE as NOT_A_REFERENCE,
    OUTSIDE_GROUND_TRUTH as OUTSIDE_GROUND_TRUTH,
    SUBSET_TITLES as SUBSET_TITLES,
    AgreementSubset as AgreementSubset,
    HumanAgreement as HumanAgreement,
    measure_agreement as measure_agreement,
)
from crosslens.analyze.discriminability.measure import (
    Discriminability as Discriminability,
    entropy as entropy,
    entropy_band as entropy_band,
    entropy_histogram as entropy_histogram,
    measure_discriminability as measure_discriminability,
)
from crosslens.analyze.granularity.features import FEATURES as FEATURES
from crosslens.analyze.granularity.measure import (
    FeatureChange as FeatureChange,
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
from crosslens.analyze.label_quality.assess import assess_label_quality as assess_label_quality
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
    ThresholdCount as ThresholdCount,
    find_missing_positives as find_missing_positives,
)
from crosslens.analyze.neighbours import (
    HASH_BITS as HASH_BITS,
    DuplicateEvidence as DuplicateEvidence,
    NearDuplicates as NearDuplicates,
    hash_files as hash_files,
    nearest_items as nearest_items,
    unit_vectors as unit_vectors,
)
