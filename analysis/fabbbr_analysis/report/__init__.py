"""The report: one page that needs nothing but a browser, and the same numbers as Markdown and CSV."""

from fabbbr_analysis.report.changes import all_the_same, paired, sentences
from fabbbr_analysis.report.compare import asked_differently, write_comparison
from fabbbr_analysis.report.write import place_of, write_report

__all__ = [
    "all_the_same", "asked_differently", "paired", "place_of", "sentences", "write_comparison",
    "write_report",
]  # fmt: skip
