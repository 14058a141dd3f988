"""A real cell, raw files and all: two BBR flows and one of given bytes, on a lossy path that changes."""

from pathlib import Path

from fabbbr.model import Cell

GOLDEN = Path(__file__).parent / "golden"
CELL = Cell.model_validate_json((GOLDEN / "cell" / "cell.json").read_text(encoding="utf-8"))
RAW = GOLDEN / "cell" / "raw"
