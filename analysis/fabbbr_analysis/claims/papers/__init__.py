"""A module per paper, each with its ``CLAIMS``. One that is put into this folder is found here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from fabbbr_analysis.claims.records import Claim


def all_claims() -> tuple[Claim, ...]:
    """Every claim that is code, paper by paper in the order of the register, the gate of our own BBR last."""
    papers: list[tuple[Claim, ...]] = [
        import_module(f"{__name__}.{module.name}").CLAIMS for module in iter_modules(__path__)
    ]
    return tuple(claim for claims in sorted(papers, key=lambda claims: claims[0].row) for claim in claims)
