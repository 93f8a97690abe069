"""Words that occur in any caption, whatever it describes."""

from __future__ import annotations

from crosslens.language.scene_words import word_set

STOP_WORDS = word_set(
    """a about above across after against all along also am among an and another any are around as at away back be
    because been before behind being below beneath beside besides between beyond both but by can could did do does doing
    down during each either else every few for from had has have having he her here hers herself him himself his how i
    if in inside into is it it's its itself just like many may me might more most much must my near neither next no nor
    not of off on once one only onto or other others our out outside over own past per same several she should so some
    something such than that the their them themselves then there these they this those through to together too toward
    towards two under until up upon very was we were what when where which while who whom whose why will with within
    without would you your"""
)
"""Words that name nothing one could see."""
