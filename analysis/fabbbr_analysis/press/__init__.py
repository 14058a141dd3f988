"""Figures, tables and references for a paper: the numbers of the report, as LaTeX takes them."""
