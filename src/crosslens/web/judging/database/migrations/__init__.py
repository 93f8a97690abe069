"""The versions of the database, each a module of ``versions``."""
