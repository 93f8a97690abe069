from crosslens.build.benchmark import (
    Recos as Recos,
    grammar_counts as grammar_counts,
    verdict_counts as verdict_counts,
    verification_counts as verification_counts,
)
from crosslens.build.candidates import Encoders as Encoders
from crosslens.build.folder import IMP as IMP, RECOS as RECOS, DecisionLog as DecisionLog
from crosslens.build.generators.contents import Annotations as Annotations, ObjectAnnotation as ObjectAnnotation
from crosslens.build.generators.protocol import (
    CONFUSABLE as CONFUSABLE,
    DESCRIBE as DESCRIBE,
    GENERATORS as GENERATORS,
    SHARPER as SHARPER,
    VAGUER as VAGUER,
    Generator as Generator,
    GeneratorSettings as GeneratorSettings,
    Recorded as Recorded,
    Request as Request,
    load_generator as load_generator,
)
from crosslens.build.grammar import (
    GRAMMAR_CHECKS as GRAMMAR_CHECKS,
    GrammarCheck as GrammarCheck,
    load_grammar_check as load_grammar_check,
)
from crosslens.build.imp.benchmark import Imp as Imp
from crosslens.build.imp.build import build_imp as build_imp
from crosslens.build.imp.cleaning.captions import (
    CleanedCaptions as CleanedCaptions,
    check_cleaned_output as check_cleaned_output,
    clean_captions as clean_captions,
    cleaning_rules as cleaning_rules,
    read_captions as read_captions,
    write_cleaned as write_cleaned,
)
from crosslens.build.imp.cleaning.duplicates import near_duplicates as near_duplicates
from crosslens.build.imp.diversity import CaptionMap as CaptionMap, map_captions as map_captions
from crosslens.build.imp.folder import (
    candidate_captions as candidate_captions,
    candidate_dataset as candidate_dataset,
    is_imp_folder as is_imp_folder,
    write_verdicts as write_verdicts,
)
from crosslens.build.imp.people import (
    AGREE as AGREE,
    ANNOTATE as ANNOTATE,
    CHANGES as CHANGES,
    DONE as DONE,
    VERDICTS as VERDICTS,
    Verdict as Verdict,
)
from crosslens.build.imp.sampling import FEWEST as FEWEST
from crosslens.build.recos import build_recos as build_recos
from crosslens.build.settings import (
    CleaningSettings as CleaningSettings,
    RecosSettings as RecosSettings,
    SamplingSettings as SamplingSettings,
    SelectionSettings as SelectionSettings,
)
from crosslens.build.verification import VerificationSheet as VerificationSheet, read_sheet as read_sheet
