"""Figures as plotly objects, for the report and for notebooks.

>>> from fabbbr_analysis import figures
>>> callable(figures.figure) and callable(figures.figure_names)
True
"""

from fabbbr_analysis.figures.catalogue import figure, figure_names

__all__ = ["figure", "figure_names"]
