from crosslens.synth.backdrops.backdrop import BACKDROPS as BACKDROPS
from crosslens.synth.captions import COLOUR_WORDS as COLOUR_WORDS
from crosslens.synth.generation import VERSIONS as VERSIONS, generate as generate, select_version as select_version
from crosslens.synth.grammar import (
    a as a,
    listing as listing,
    number_word as number_word,
    pluralise as pluralise,
    sentence as sentence,
)
from crosslens.synth.kinds import KINDS as KINDS
from crosslens.synth.kinds.catalogue import COLOURED as COLOURED
from crosslens.synth.scene import SyntheticScene as SyntheticScene
from crosslens.synth.tasks import TASKS as TASKS
from crosslens.synth.tasks.action import POSE_PHRASES as POSE_PHRASES
from crosslens.synth.writing import write_scenes as write_scenes
