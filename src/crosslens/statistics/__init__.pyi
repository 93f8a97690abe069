from crosslens.statistics.bootstrap import (
    Bootstrap as Bootstrap,
    Estimate as Estimate,
    aggregate as aggregate,
    difference_bounds as difference_bounds,
    estimate as estimate,
    share_of_sums as share_of_sums,
    sum_of_means as sum_of_means,
)
from crosslens.statistics.correlation import (
    COEFFICIENTS as COEFFICIENTS,
    SCALES as SCALES,
    BlandAltman as BlandAltman,
    Correlations as Correlations,
    bland_altman as bland_altman,
    correlations as correlations,
    rescaled as rescaled,
)
from crosslens.statistics.judges import (
    JudgeAgreement as JudgeAgreement,
    cohen_kappa as cohen_kappa,
    judge_agreement as judge_agreement,
    kappa_estimate as kappa_estimate,
    krippendorff_alpha as krippendorff_alpha,
)
from crosslens.statistics.paired import (
    CORRECTION_WORDS as CORRECTION_WORDS,
    PairedRepetitions as PairedRepetitions,
    PairedTest as PairedTest,
    Samples as Samples,
    correct as correct,
    corrected_words as corrected_words,
    detectable_difference as detectable_difference,
    floor_of_p as floor_of_p,
    holm as holm,
    mean_over_repetitions as mean_over_repetitions,
    paired_permutation as paired_permutation,
    paired_repetitions as paired_repetitions,
    paired_samples as paired_samples,
    permutation_words as permutation_words,
    relative_interval as relative_interval,
    same_tests as same_tests,
    significance_sentence as significance_sentence,
)
from crosslens.statistics.precision_recall import (
    AREAS as AREAS,
    Area as Area,
    PairCounter as PairCounter,
    PrecisionRecall as PrecisionRecall,
    auprc as auprc,
    match_threshold as match_threshold,
)
