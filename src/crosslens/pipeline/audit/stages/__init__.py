"""The stages of an audit: one module per room that they call."""
