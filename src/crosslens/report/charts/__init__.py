"""Charts as SVG inside a page: no script, colours from the page's style, a table behind each."""
