"""Requirements that a model has to fulfil, read from one line each, and checked against its results."""
