"""Scores → exact ranks: tiles, ties, backends, ready-made lists."""

from crosslens.rank.both import BACKENDS, rank_both
from crosslens.rank.functions import SCORES, scorer_of
from crosslens.rank.lists import rank_lists
from crosslens.rank.scorers import InnerProduct, ScoreMatrix, Scorer

__all__ = ["BACKENDS", "SCORES", "InnerProduct", "ScoreMatrix", "Scorer", "rank_both", "rank_lists", "scorer_of"]
