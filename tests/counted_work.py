"""How much Python a call runs: bytecode instructions, the same on every machine and under any load."""

import sys
from pathlib import Path

OURS = str(Path(__file__).parents[1] / "fabbbr")
SLICES = str(Path(__file__).parents[1] / "slices")


class TooMuchWorkError(Exception):
    """The call has run more instructions than it was allowed."""


def work(call, *, most=None, folders=(OURS, SLICES)):
    """Instructions run by ``call`` in the files of ``folders`` (all Python when empty).

    What runs inside C (a search in a list, a regular expression) counts nothing. Raises TooMuchWorkError
    beyond ``most``, so that a call that would take an hour fails in seconds.
    """
    count = 0

    def instruction(frame, event, _):
        nonlocal count
        if event == "opcode":
            count += 1
            if most is not None and count > most:
                message = f"more than {most} instructions, in {frame.f_code.co_filename}:{frame.f_lineno}"
                raise TooMuchWorkError(message)
        return instruction

    def entered(frame, _event, _argument):
        if folders and not frame.f_code.co_filename.startswith(folders):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return instruction

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
