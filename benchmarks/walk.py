"""How a cell walks through the rooms, from plan to certificate: how often it goes back to one it had left.

    python -m benchmarks.walk

Every call of a function of fabbbr is noted with its module; the ground floor (records, units) does not
count. Going back means that the walk enters a module, or a folder, in which it was before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from fabbbr.certify.certificate import certify
from fabbbr.certify.controls import identified
from fabbbr.certify.evidence import Evidence
from fabbbr.job.build import prepare
from fabbbr.model import Cell
from fabbbr.testbed import VIRTUAL_TIME, Kernel, Machine, Testbed

_GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "cell"
_GROUND = {
    "errors", "files", "foreign", "limits", "model", "physics", "quantity", "record", "seal", "streams",
    "suggest", "testbed", "topology", "units", "version", "ways",
}  # fmt: skip
_PLACE = Testbed(
    backend="guest",
    clock="virtual",
    tolerances=VIRTUAL_TIME,
    machines={"here": Machine(kernel=Kernel(release="0", timer_hz=1000))},
)


class Walk:
    """The modules in the order in which they were entered."""

    def __init__(self) -> None:
        self.modules: list[str] = []

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Called by the interpreter for every call."""
        name = str(frame.f_globals.get("__name__", ""))
        is_room = name.startswith("fabbbr.") and name.split(".")[1] not in _GROUND
        if event == "call" and is_room and not frame.f_code.co_name.startswith("<"):
            self.modules.append(name)


def _entered(names: Sequence[str], depth: int) -> list[str]:
    """The rooms at this depth, one entry for each time that the walk came in from another."""
    rooms = [".".join(name.split(".")[:depth]) for name in names]
    return [room for place, room in enumerate(rooms) if place == 0 or rooms[place - 1] != room]


def main() -> int:
    cell = Cell.model_validate_json((_GOLDEN / "cell.json").read_text(encoding="utf-8"))
    walk = Walk()
    sys.setprofile(walk.note)
    prepared = prepare(cell, _PLACE)
    evidence = Evidence.read(_GOLDEN / "raw")
    certify(prepared, evidence, lossy_links=1)
    identified(prepared, evidence.readback)
    sys.setprofile(None)
    for what, depth in (("folders", 2), ("modules", 3)):
        entered = _entered(walk.modules, depth)
        rooms = set(entered)
        back = len(entered) - len(rooms)
        print(f"{what}: {len(rooms)}, entered {len(entered)} times, went back {back} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
