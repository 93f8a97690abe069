from crosslens.statistics.aggregation import aggregate as aggregate
from crosslens.statistics.bootstrap import (
    Bootstrap as Bootstrap,
    Estimate as Estimate,
    estimate as estimate,
    share_of_sums as share_of_sums,
    sum_of_means as sum_of_means,
)
from crosslens.statistics.bounded import Bounds as Bounds, difference_bounds as difference_bounds
from crosslens.statistics.corrections import (
    CORRECTION_WORDS as CORRECTION_WORDS,
    CORRECTIONS as CORRECTIONS,
    correct as correct,
    floor_of_p as floor_of_p,
    holm as holm,
    significance_sentence as significance_sentence,
)
from crosslens.statistics.correlation import (
    COEFFICIENTS as COEFFICIENTS,
    Correlations as Correlations,
    correlations as correlations,
)
from crosslens.statistics.judges import (
    JudgeAgreement as JudgeAgreement,
    cohen_kappa as cohen_kappa,
    judge_agreement as judge_agreement,
    kappa_estimate as kappa_estimate,
)
from crosslens.statistics.krippendorff import AlphaScale as AlphaScale, krippendorff_alpha as krippendorff_alpha
from crosslens.statistics.method_agreement import (
    SCALES as SCALES,
    BlandAltman as BlandAltman,
    bland_altman as bland_altman,
    rescaled as rescaled,
)
from crosslens.statistics.paired import (
    PairedChange as PairedChange,
    Samples as Samples,
    paired_samples as paired_samples,
    relative_interval as relative_interval,
)
from crosslens.statistics.permutation import PairedTest as PairedTest, paired_permutation as paired_permutation
from crosslens.statistics.precision_recall import (
    AREAS as AREAS,
    Area as Area,
    auprc as auprc,
)
from crosslens.statistics.repetitions import (
    PairedRepetitions as PairedRepetitions,
    mean_over_repetitions as mean_over_repetitions,
    paired_repetitions as paired_repetitions,
)
