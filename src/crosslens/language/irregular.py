"""English forms that no rule makes: the everyday ones, where WordNet's list holds archaic or learned forms as well."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


PLURALS = _pairs(
    """person people man men woman women child children foot feet tooth teeth goose geese mouse mice louse lice ox
    oxen die dice penny pennies knife knives life lives wife wives leaf leaves loaf loaves half halves calf calves elf
    elves self selves shelf shelves thief thieves wolf wolves scarf scarves hoof hooves wharf wharves dwarf dwarves
    sheaf sheaves bus buses gas gases quiz quizzes potato potatoes tomato tomatoes hero heroes echo echoes mosquito
    mosquitoes mango mangoes buffalo buffaloes volcano volcanoes tornado tornadoes cargo cargoes domino dominoes
    torpedo torpedoes veto vetoes cactus cacti crisis crises oasis oases basis bases axis axes analysis analyses
    hypothesis hypotheses thesis theses diagnosis diagnoses parenthesis parentheses phenomenon phenomena criterion
    criteria datum data stratum strata medium media nucleus nuclei stimulus stimuli fungus fungi larva larvae vertebra
    vertebrae passer-by passers-by passerby passersby hanger-on hangers-on runner-up runners-up man-of-war men-of-war
    lens lenses taxi taxis banjo banjos halo halos zero zeros motto mottos ghetto ghettos"""
)
"""Singular → plural."""

SAME_IN_PLURAL = _words(
    """aircraft chassis corps watercraft spacecraft hovercraft bison cod deer fish moose offspring salmon series sheep
    shrimp species squid swine trout cattle elk reindeer haddock mackerel"""
)

ALWAYS_PLURAL = _words(
    """binoculars bleachers boxers breeches briefs cattle chopsticks clothes clippers coveralls dungarees earphones
    eyeglasses fatigues fireworks forceps glasses goggles groceries headphones jeans khakis leggings leotards outdoors
    outskirts overalls pajamas panties pants pantyhose pliers police premises pyjamas rapids remains scissors scrubs
    shades shears shorts slacks spectacles stairs sunglasses suspenders sweatpants sweats thanks tights tongs tropics
    trousers trunks tweezers underpants undies whereabouts woods"""
)
"""Nouns that are plural in form and have no singular of the same meaning."""

_VERBS = """
arise arose arisen|awake awoke awoken|be was been|bear bore borne|beat beat beaten|become became become
begin began begun|bend bent bent|bet bet bet|bid bid bid|bind bound bound|bite bit bitten|bleed bled bled
blow blew blown|break broke broken|breed bred bred|bring brought brought|build built built|burst burst burst
buy bought bought|cast cast cast|catch caught caught|choose chose chosen|cling clung clung|come came come
cost cost cost|creep crept crept|cut cut cut|deal dealt dealt|dig dug dug|do did done|draw drew drawn
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|fight fought fought
find found found|flee fled fled|fling flung flung|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grind ground ground
grow grew grown|hang hung hung|have had had|hear heard heard|hide hid hidden|hit hit hit|hold held held
hurt hurt hurt|keep kept kept|kneel knelt knelt|knit knit knit|know knew known|lay laid laid|lead led led
leave left left|lend lent lent|let let let|lie lay lain|light lit lit|lose lost lost|make made made|mean meant meant
meet met met|pay paid paid|put put put|quit quit quit|read read read|rid rid rid|ride rode ridden|ring rang rung
rise rose risen|run ran run|say said said|see saw seen|seek sought sought|sell sold sold|send sent sent|set set set
sew sewed sewn|shake shook shaken|shed shed shed|shine shone shone|shoot shot shot|show showed shown
shrink shrank shrunk|shut shut shut|sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|slide slid slid
sling slung slung|slit slit slit|speak spoke spoken|spend spent spent|spin spun spun|spit spat spat
split split split|spread spread spread|spring sprang sprung|stand stood stood|steal stole stolen|stick stuck stuck
sting stung stung|stink stank stunk|strew strewed strewn|stride strode stridden|strike struck struck
string strung strung|strive strove striven|swear swore sworn|sweep swept swept|swell swelled swollen|swim swam swum
swing swung swung|take took taken|teach taught taught|tear tore torn|tell told told|think thought thought
throw threw thrown|thrust thrust thrust|tread trod trodden|wake woke woken|wear wore worn|weave wove woven
weep wept wept|win won won|wind wound wound|wring wrung wrung|write wrote written
"""
PAST_FORMS: dict[str, tuple[str, str]] = {
    base: (past, participle)
    for base, past, participle in (line.split() for line in _VERBS.replace("\n", "|").split("|") if line)
}
"""Verb → its past and its participle; verbs that are regular in American English are not here."""

PREFIXES = ("over", "under", "out", "with", "fore", "mis", "un", "re", "up", "in", "inter", "be")
"""Before an irregular verb they keep its forms: *overtook*, *rebuilt*, *withdrew*; checked against WordNet's list."""

COMPARED = {
    "good": ("better", "best"),
    "well": ("better", "best"),
    "bad": ("worse", "worst"),
    "ill": ("worse", "worst"),
    "far": ("farther", "farthest"),
    "little": ("littler", "littlest"),
    "many": ("more", "most"),
    "much": ("more", "most"),
    "fun": ("more fun", "most fun"),
}
"""Adjective → comparative and superlative."""
