"""From the raw files of a run to its tables."""
