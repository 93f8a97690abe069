"""Figures: one module per kind of result, drawn with plotly and written as pages or images."""
