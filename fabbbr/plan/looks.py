"""When a run that goes on until its claims are decided looks at them: fixed before it begins.

Whoever looks after every repetition and stops when the verdict pleases finds one sooner or later. So the
looks are few, their repetitions double, and each judges by an interval so wide that all of them together err
as seldom as a single look would (``fabbbr_analysis.claims.rule.confidence_of``).
"""

from __future__ import annotations

from fabbbr.errors import UsageError

_DOUBLINGS = 3


def looks(first: int, most: int | None) -> tuple[int, ...]:
    """Repetitions at each look: ``first``, twice as many and so on, at last ``most`` (default: eight times).

    Raises UsageError when ``most`` is not more than ``first``.

    >>> looks(5, None), looks(3, 20)
    ((5, 10, 20, 40), (3, 6, 12, 20))
    """
    last = first << _DOUBLINGS if most is None else most
    if last <= first:
        message = f"--most {last}: the run begins with {first} repetitions, so there is nothing to add"
        raise UsageError(message)
    found = [first]
    while found[-1] * 2 < last:
        found.append(found[-1] * 2)
    return (*found, last)
