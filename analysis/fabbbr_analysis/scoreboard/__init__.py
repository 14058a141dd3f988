"""All papers and all their claims on one page: what was reproduced, what was not, and why.

``papers.csv`` says which experiments a paper has, by the beginning of their ids; ``findings.csv`` says in one
sentence why a claim comes out as it does, where ``docs/findings.md`` has looked into it.
"""

from __future__ import annotations

from fabbbr_analysis.scoreboard.board import Board, Paper, Standing, board, papers_of
from fabbbr_analysis.scoreboard.write import PAGE, write_scoreboard

__all__ = ["PAGE", "Board", "Paper", "Standing", "board", "papers_of", "write_scoreboard"]
