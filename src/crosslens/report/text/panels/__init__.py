"""Results of panels of models and of pairs of scorers as text."""
