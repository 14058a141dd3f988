"""Text that LaTeX prints as it stands."""

from __future__ import annotations

import re

_SPECIAL = {
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\u00a0": "~",
    "\u202f": r"\,",
    "µ": r"\textmu{}",
    "μ": r"\textmu{}",
    "×": r"$\times$",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "²": r"\textsuperscript{2}",
    "°": r"\textdegree{}",
    "\n": " ",
}
_ESCAPED = re.compile("|".join(map(re.escape, _SPECIAL)))
_QUOTES = re.compile(r'(^|[\s(])"')


def escaped(text: str) -> str:
    r"""``text`` as LaTeX source, in which nothing of it is a command.

    >>> print(escaped("loss 5 % of cardwell_f10, \\input{x}"))
    loss 5 \% of cardwell\_f10, \textbackslash{}input\{x\}
    >>> print(escaped('he said "no"'))
    he said ``no''
    """
    quoted = _QUOTES.sub(r"\1``", text).replace('"', "''") if text.count('"') % 2 == 0 else text
    return _ESCAPED.sub(lambda match: _SPECIAL[match[0]], quoted)


def label(kind: str, name: str) -> str:
    r"""A label of nothing but letters, digits and what is safe in one.

    >>> label("fig", "over_time[loss=0.1%]")
    'fig:over-time-loss-0.1'
    """
    return f"{kind}:{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-')}"
