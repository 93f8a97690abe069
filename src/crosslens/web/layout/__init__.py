"""The frame of all pages: templates, the style sheet, and files that browsers keep."""
