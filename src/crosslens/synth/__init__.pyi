from crosslens.synth.backdrops import BACKDROPS as BACKDROPS
from crosslens.synth.captions import (
    COLOUR_WORDS as COLOUR_WORDS,
    a as a,
    coloured as coloured,
    listing as listing,
    number_word as number_word,
    part_of_picture as part_of_picture,
    pluralise as pluralise,
    sentence as sentence,
    setting_name as setting_name,
)
from crosslens.synth.generation import VERSIONS as VERSIONS, generate as generate, select_version as select_version
from crosslens.synth.kinds import KINDS as KINDS, Kind as Kind
from crosslens.synth.scene import SyntheticScene as SyntheticScene, relation as relation
from crosslens.synth.tasks import TASKS as TASKS
from crosslens.synth.tasks.objects import PERSON_STANDING as PERSON_STANDING, POSE_PHRASES as POSE_PHRASES
from crosslens.synth.writing import write_scenes as write_scenes
