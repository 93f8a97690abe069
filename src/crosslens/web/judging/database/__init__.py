"""Where projects, items and judgements are kept: tables, engine, and the functions that change them."""
