"""The report: runs and what an audit computed, as one file that needs no other."""
