"""The report: one page that needs nothing but a browser, and the same numbers as Markdown and CSV."""

from fabbbr_analysis.report.changes import sentences
from fabbbr_analysis.report.compare import asked_differently, write_comparison
from fabbbr_analysis.report.write import place_of, write_report

__all__ = ["asked_differently", "place_of", "sentences", "write_comparison", "write_report"]
