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
from crosslens.build.log import DecisionLog as DecisionLog
from crosslens.build.pages import (
    check_summary as check_summary,
    grammar_counts as grammar_counts,
    verdict_counts as verdict_counts,
    verification_counts as verification_counts,
)
from crosslens.build.recos import build_recos as build_recos
from crosslens.build.verification import VerificationSheet as VerificationSheet, read_sheet as read_sheet
