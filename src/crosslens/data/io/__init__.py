"""Files in and out: bytes, text, JSON, tables, arrays, archives, rankings; checks that name the bad row."""
