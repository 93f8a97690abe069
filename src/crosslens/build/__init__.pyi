from crosslens.build.benchmark import Recos as Recos, RecosSettings as RecosSettings
from crosslens.build.encoding import Encoders as Encoders
from crosslens.build.generators.annotations import Annotations as Annotations, ObjectAnnotation as ObjectAnnotation
from crosslens.build.generators.protocol import (
    CONFUSABLE as CONFUSABLE,
    DESCRIBE as DESCRIBE,
    GENERATORS as GENERATORS,
    SHARPER as SHARPER,
    VAGUER as VAGUER,
    Generator as Generator,
    GeneratorSettings as GeneratorSettings,
    Request as Request,
    load_generator as load_generator,
)
from crosslens.build.generators.recorded import Recorded as Recorded
from crosslens.build.grammar.protocol import (
    GRAMMAR_CHECKS as GRAMMAR_CHECKS,
    GrammarCheck as GrammarCheck,
    load_grammar_check as load_grammar_check,
)
from crosslens.build.imp.benchmark import Imp as Imp
from crosslens.build.imp.build import build_imp as build_imp
from crosslens.build.imp.cleaning.captions import (
    CleanedCaptions as CleanedCaptions,
    clean_captions as clean_captions,
    cleaning_rules as cleaning_rules,
)
from crosslens.build.imp.cleaning.duplicates import near_duplicates as near_duplicates
from crosslens.build.imp.cleaning.files import (
    check_cleaned_output as check_cleaned_output,
    read_captions as read_captions,
    write_cleaned as write_cleaned,
)
from crosslens.build.imp.cleaning.settings import CleaningSettings as CleaningSettings
from crosslens.build.imp.diversity import CaptionMap as CaptionMap, map_captions as map_captions
from crosslens.build.imp.people.annotation import CHANGES as CHANGES, VERDICTS as VERDICTS, Verdict as Verdict
from crosslens.build.imp.people.judged import (
    candidate_captions as candidate_captions,
    candidate_dataset as candidate_dataset,
    is_imp_folder as is_imp_folder,
    write_verdicts as write_verdicts,
)
from crosslens.build.imp.planar_map import FEWEST as FEWEST
from crosslens.build.imp.sections import AGREE as AGREE, ANNOTATE as ANNOTATE, DONE as DONE
from crosslens.build.imp.settings import SamplingSettings as SamplingSettings, SelectionSettings as SelectionSettings
from crosslens.build.log import IMP as IMP, RECOS as RECOS, DecisionLog as DecisionLog
from crosslens.build.pages import (
    check_summary as check_summary,
    grammar_counts as grammar_counts,
    verdict_counts as verdict_counts,
    verification_counts as verification_counts,
)
from crosslens.build.recos import build_recos as build_recos
from crosslens.build.verification import VerificationSheet as VerificationSheet, read_sheet as read_sheet
