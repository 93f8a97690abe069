"""Where projects, items and judgements are kept: tables, engine, migrations, and the functions that change them."""
