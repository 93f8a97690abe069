"""Passes by fused kernels, where there is Triton."""
