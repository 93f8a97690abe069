"""All failures of a run: figures, causes, rules, confusions, and two runs beside each other."""
