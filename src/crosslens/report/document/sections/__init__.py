"""The sections of a report, as functions of the context; without content they return None."""
