"""Places for tests: records only, nothing runs there."""

from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME, Kernel, Machine, Testbed

RELEASE = "6.12.57"


def place(
    clock: str = "virtual",
    *,
    backend: str = "guest",
    timer_hz: int = 1000,
    tools: dict[str, str] | None = None,
) -> Testbed:
    """A testbed of one machine."""
    kernel = Kernel(release=RELEASE, timer_hz=timer_hz, config_sha256="ab" * 32)
    return Testbed(
        backend=backend,
        clock=clock,
        tolerances=VIRTUAL_TIME if clock == "virtual" else REAL_TIME,
        machines={"here": Machine(kernel=kernel, tools=tools or {})},
    )


GUEST = place()


def several(placement: dict[str, str], **changes: object) -> Testbed:
    """A testbed of several machines, alike but for their names."""
    (machine,) = GUEST.machines.values()
    machines = dict.fromkeys(placement.values(), machine)
    return GUEST.model_copy(update={"machines": machines, "placement": placement, **changes})
