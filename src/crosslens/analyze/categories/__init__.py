"""Results by category: how well each level of difficulty, or any other group of pairs, is retrieved and recognised."""
