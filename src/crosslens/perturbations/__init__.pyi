from crosslens.perturbations.caption import (
    Caption as Caption,
    CaptionWord as CaptionWord,
    Edit as Edit,
    Perturbed as Perturbed,
    Token as Token,
    apply_edits as apply_edits,
    cased_like as cased_like,
    diff_spans as diff_spans,
    words_of as words_of,
)
from crosslens.perturbations.images.changes import (
    IMAGE_PERTURBATIONS as IMAGE_PERTURBATIONS,
    SEVERITIES as SEVERITIES,
    ImagePerturbation as ImagePerturbation,
    image_perturbation as image_perturbation,
    parse_image_perturbation as parse_image_perturbation,
    perturb_picture as perturb_picture,
)
from crosslens.perturbations.images.writing import (
    check_sheet as check_sheet,
    perturb_images as perturb_images,
    severity_sheet as severity_sheet,
    write_sheet as write_sheet,
)
from crosslens.perturbations.outcomes import (
    Candidate as Candidate,
    CandidateEdits as CandidateEdits,
    candidate_edits as candidate_edits,
)
from crosslens.perturbations.perturbing import (
    PERTURBATIONS as PERTURBATIONS,
    CannotApply as CannotApply,
    Perturbation as Perturbation,
    options_of as options_of,
    ordered_perturbations as ordered_perturbations,
    perturb as perturb,
    perturb_all as perturb_all,
    perturb_each as perturb_each,
    perturbation as perturbation,
    perturbations_with as perturbations_with,
)
from crosslens.perturbations.selection import (
    BRIT_PERTURBATIONS as BRIT_PERTURBATIONS,
    GROUPS as GROUPS,
    IMAGES as IMAGES,
    ListedPerturbations as ListedPerturbations,
    PerturbedCaptions as PerturbedCaptions,
    changed_first as changed_first,
    chosen_perturbations as chosen_perturbations,
    is_image_perturbation as is_image_perturbation,
    phrase_of as phrase_of,
)
from crosslens.perturbations.writing import (
    applied_counts as applied_counts,
    read_perturbed as read_perturbed,
    with_changed_texts as with_changed_texts,
    write_perturbations as write_perturbations,
)
