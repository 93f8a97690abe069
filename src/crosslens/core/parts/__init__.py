"""What a result is shown by. Parts are values and render nothing: the forms of :mod:`crosslens.report` do."""
