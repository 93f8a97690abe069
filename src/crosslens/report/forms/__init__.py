"""The forms of a result: its parts as a terminal's text, a page, drawings, and files of every ending."""
