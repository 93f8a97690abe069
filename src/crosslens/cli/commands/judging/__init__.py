"""``crosslens judging`` and ``crosslens judge``: projects in which people and models judge."""
