"""Real cells, raw files and all.

One of two BBR flows and one of given bytes, on a lossy path that changes; and one with segmentation offloads,
whose queue cuts some super-packets and drops others, with injected loss behind it.
"""

from pathlib import Path

from fabbbr.model import Cell

GOLDEN = Path(__file__).parent / "golden"
CELL = Cell.model_validate_json((GOLDEN / "cell" / "cell.json").read_text(encoding="utf-8"))
RAW = GOLDEN / "cell" / "raw"

WITH_OFFLOADS = Cell.model_validate_json((GOLDEN / "offloads" / "cell.json").read_text(encoding="utf-8"))
WITH_OFFLOADS_RAW = GOLDEN / "offloads" / "raw"
