"""WordNet 3.0, compiled: words, senses in order, relations, path similarity, morphology; no download, no nltk."""

from crosslens.language.wordnet.wordnet import COMPILED, Synset, WordNet, load_wordnet

__all__ = ["COMPILED", "Synset", "WordNet", "load_wordnet"]
