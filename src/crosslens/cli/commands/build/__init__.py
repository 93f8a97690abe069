"""``crosslens build``: new benchmarks."""
