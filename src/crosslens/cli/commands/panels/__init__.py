"""Commands over a panel of models: results by category, and two scorers of the same pairs."""
