"""The metric families, one module per group; importing a module registers its metrics."""
