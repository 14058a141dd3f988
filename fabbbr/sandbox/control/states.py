"""The states of a slice and what leads from one to the next, as in FABRIC's orchestrator."""

from __future__ import annotations

from typing import Literal, get_args

State = Literal[
    "Nascent",
    "Configuring",
    "StableOK",
    "StableError",
    "Modifying",
    "ModifyOK",
    "ModifyError",
    "Closing",
    "Dead",
]
Step = Literal["demand", "done", "failed", "modify", "accept", "renew", "close", "expire", "closed"]

STATES: tuple[State, ...] = get_args(State)
STABLE: frozenset[State] = frozenset({"StableOK", "StableError"})
MODIFIED: frozenset[State] = frozenset({"ModifyOK", "ModifyError"})
GONE: frozenset[State] = frozenset({"Closing", "Dead"})

TRANSITIONS: dict[tuple[State, Step], State] = {
    ("Nascent", "demand"): "Configuring",
    ("Configuring", "done"): "StableOK",
    ("Configuring", "failed"): "StableError",
    ("Modifying", "done"): "ModifyOK",
    ("Modifying", "failed"): "ModifyError",
    ("ModifyOK", "accept"): "StableOK",
    ("ModifyError", "accept"): "StableError",
    ("Closing", "closed"): "Dead",
    **{(state, "modify"): "Modifying" for state in STABLE},
    **{(state, "renew"): "Configuring" for state in STABLE | MODIFIED},
    **{(state, "close"): "Closing" for state in STABLE | MODIFIED},
    **{(state, "expire"): "Closing" for state in STATES if state not in GONE},
}


class NotNowError(Exception):
    """The slice is in a state in which this cannot be done."""


def after(state: State, step: Step) -> State:
    """The state that follows; NotNowError when the step is not possible in this one.

    >>> after("StableOK", "modify")
    'Modifying'
    """
    following = TRANSITIONS.get((state, step))
    if following is None:
        message = f"{step} is not possible in state {state}"
        raise NotNowError(message)
    return following
