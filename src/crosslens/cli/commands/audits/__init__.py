"""``crosslens audit`` and ``demo``: everything at once."""
