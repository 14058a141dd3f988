"""A real cell, raw files and all: two flows of BBR and one of given bytes over a lossy path whose rate changes."""

from pathlib import Path

from fabbbr.model import Cell

GOLDEN = Path(__file__).parent / "golden"
CELL = Cell.model_validate_json((GOLDEN / "cell" / "cell.json").read_text(encoding="utf-8"))
RAW = GOLDEN / "cell" / "raw"
