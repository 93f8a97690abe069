"""Words that the tokenizer treats by themselves: abbreviations, contractions, openings of sentences."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ABBREVIATIONS = _words(
    """adj adm adv al ala alex apr ariz assn assoc asst atty aug ave bhd bldg blvd brig bros calif capt cf cie cmdr co
    col colo conn corp cos cpl ct dak dec dept det dr drs ens esq est etc ext feb fla fri ft ga gen gov hon inc ind
    insp intl jan jos jr jul jun kan ky lieut lt ltd maj mar md messrs mich minn mme mo mon mont mr mrs ms mt natl neb
    nev nov oct okla penn pfc ph plc pres prof pvt rd rep rev rt sen sens sep sept seq sfc sgt spc sq sr st ste supt
    sys tel tenn thu thurs treas tue tues univ va vs vt wed wis wm wyo"""
)
"""Keep their period wherever they stand, in any case: ``Mr.``, ``dept.``, ``etc.``"""

PROPER_ABBREVIATIONS = _words("Ark Az Del Ill La Mass Miss Ore Pa Tex Wash")
"""Keep their period only when capitalised: in small letters they are words (``ill``, ``mass``, ``wash``)."""

SMALL_ABBREVIATIONS = _words("mfg mtg pte pty")
"""Keep their period unless all in capitals."""

NUMBERED = _words("art ca fig figs no nos op pp prop")
"""Keep their period only before a number: ``no. 5``, ``figs. 2``."""

SENTENCE_STARTS = _words(
    """A About According Additionally After An As At But Earlier He Her Here However If In It Last Many More Now Once
    One Other Our She Since So Some Such That The Their Then There These They This We What When While Yet You"""
)
"""A single letter's period before one of these ends a sentence (``plan b. The``); otherwise it is an initial."""

APOSTROPHE_WORDS = _words(
    """'em 'til 'till 'cause 'n' c'mon s'mores li'l ol' somethin' ne'er e'er o'er o'clock ma'am nat'l cont'd ev'ry
    nor'easter dunkin'"""
)
"""Words that keep their apostrophe."""

JOINED = (
    ("can", "not"),
    ("gon", "na"),
    ("got", "ta"),
    ("lem", "me"),
    ("gim", "me"),
    ("wan", "na"),
    ("'t", "is"),
    ("'t", "was"),
)
"""Two words written as one."""
