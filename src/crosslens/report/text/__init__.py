"""Results as text for a terminal: one module per feature, each registers its renderers."""
