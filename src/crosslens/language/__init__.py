"""Words: tokens, tags, lemmas, WordNet, colours, scene graphs."""
