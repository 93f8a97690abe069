from crosslens.perturbations.caption import (
    Caption as Caption,
    CaptionWord as CaptionWord,
    Edit as Edit,
    Perturbed as Perturbed,
    Token as Token,
    apply_edits as apply_edits,
    diff_spans as diff_spans,
    words_of as words_of,
)
from crosslens.perturbations.images.registry import (
    IMAGE_PERTURBATIONS as IMAGE_PERTURBATIONS,
    SEVERITIES as SEVERITIES,
    ImagePerturbation as ImagePerturbation,
    image_perturbation as image_perturbation,
    parse_image_perturbation as parse_image_perturbation,
    perturb_picture as perturb_picture,
)
from crosslens.perturbations.images.sheet import (
    check_sheet as check_sheet,
    severity_sheet as severity_sheet,
    write_sheet as write_sheet,
)
from crosslens.perturbations.images.writing import perturb_images as perturb_images
from crosslens.perturbations.outcomes import (
    Candidate as Candidate,
    CandidateEdits as CandidateEdits,
    candidate_edits as candidate_edits,
)
from crosslens.perturbations.perturbing import (
    options_of as options_of,
    perturb as perturb,
    perturb_all as perturb_all,
    perturb_each as perturb_each,
)
from crosslens.perturbations.registry import (
    PERTURBATIONS as PERTURBATIONS,
    CannotApply as CannotApply,
    Perturbation as Perturbation,
    ordered_perturbations as ordered_perturbations,
    perturbation as perturbation,
    perturbations_with as perturbations_with,
)
from crosslens.perturbations.sections import (
    ListedPerturbations as ListedPerturbations,
    PerturbedCaptions as PerturbedCaptions,
    changed_first as changed_first,
)
from crosslens.perturbations.selection import (
    BRIT_PERTURBATIONS as BRIT_PERTURBATIONS,
    GROUPS as GROUPS,
    IMAGES as IMAGES,
    chosen_perturbations as chosen_perturbations,
    is_image_perturbation as is_image_perturbation,
)
from crosslens.perturbations.writing import (
    applied_counts as applied_counts,
    read_perturbed as read_perturbed,
    write_perturbations as write_perturbations,
)
