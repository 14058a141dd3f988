"""Measures how BBRv1, BBRv2 and their rivals behave on a WAN.

In a notebook: ``import fabbbr as fb; run = fb.run("cardwell_f10", quick=True); run.runs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabbbr.version import __version__

__all__ = ["__version__", "open_runs", "run"]

if TYPE_CHECKING:
    from fabbbr.laboratory import open_runs, run


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the attribute is
    """Load the laboratory only when it is asked for: ``fabbbr --help`` must be instant."""
    if name in ("open_runs", "run"):
        from fabbbr import laboratory

        return getattr(laboratory, name)
    message = f"module 'fabbbr' has no attribute {name!r}"
    raise AttributeError(message)
