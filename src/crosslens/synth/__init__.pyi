from crosslens.synth.backdrops import BACKDROPS as BACKDROPS
from crosslens.synth.captions import (
    COLOUR_WORDS as COLOUR_WORDS,
    a as a,
    listing as listing,
    number_word as number_word,
    pluralise as pluralise,
    sentence as sentence,
)
from crosslens.synth.generation import VERSIONS as VERSIONS, generate as generate, select_version as select_version
from crosslens.synth.kinds import COLOURED as COLOURED, KINDS as KINDS
from crosslens.synth.scene import SyntheticScene as SyntheticScene
from crosslens.synth.tasks import TASKS as TASKS
from crosslens.synth.tasks.objects import POSE_PHRASES as POSE_PHRASES
from crosslens.synth.writing import write_scenes as write_scenes
