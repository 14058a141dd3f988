"""The report: one page that needs nothing but a browser, and the same numbers as Markdown and CSV."""

from fabbbr_analysis.report.compare import write_comparison
from fabbbr_analysis.report.write import write_report

__all__ = ["write_comparison", "write_report"]
