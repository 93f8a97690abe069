"""The reference pages, each from the code it describes."""
