"""Two scorers of the same pairs: do they agree, and where not?"""
