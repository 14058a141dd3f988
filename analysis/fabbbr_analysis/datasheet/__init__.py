"""The datasheet of a congestion control: one page, read in two minutes, with its rivals beside it."""

from __future__ import annotations

from fabbbr_analysis.datasheet.asked import EXPERIMENTS
from fabbbr_analysis.datasheet.sheet import Datasheet, sheet
from fabbbr_analysis.datasheet.write import write_datasheet

__all__ = ["EXPERIMENTS", "Datasheet", "sheet", "write_datasheet"]
