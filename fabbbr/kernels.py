"""What the kernels of a guest are called, by who builds one and by who writes an experiment."""

from __future__ import annotations

import re
from pathlib import PurePath

OF_IMAGE = "default"
"""The one that the guest image came with."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")
_IS_PATH = re.compile(r"(\.{0,2}|~)/")
_SERIES = re.compile(r"(?:linux(?:-source)?-|v)(\d[\w.+-]*)")


def is_path(text: str) -> bool:
    """Whether ``text`` says where something is, as ``./linux`` does, and not what it is called."""
    return _IS_PATH.match(text) is not None


def kernel_called(text: str) -> str | None:
    """The name of a kernel that is written so; None for what cannot be one.

    One that is built of a tree has the name of its folder; ``v6.12`` and ``linux-6.12`` are ``6.12``.

    >>> kernel_called("6.1"), kernel_called("./trees/linux"), kernel_called("v6.10"), kernel_called("a b")
    ('6.1', 'linux', '6.10', None)
    """
    written = PurePath(text).name if is_path(text) else text
    series = _SERIES.fullmatch(written)
    name = series[1] if series is not None else written
    return name if _NAME.fullmatch(name) else None
