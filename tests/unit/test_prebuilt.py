"""The distribution's guest kernel: used where it can run, refused with the reason where it cannot."""

import pytest

from fabbbr.backends.guest.kernel.prebuilt import cannot_run

AMX = "flags : fpu sse avx512f amx_bf16 amx_tile amx_int8"
PLAIN = "flags : fpu sse avx512f"


@pytest.mark.parametrize(
    ("release", "flags", "runs"),
    [("6.1.176", AMX, False), ("6.1.176", PLAIN, True), ("7.2.7", AMX, True), ("6.12.48", AMX, True)],
)
def test_an_old_kernel_is_refused_on_a_cpu_whose_state_it_cannot_hold(release, flags, runs):
    assert (cannot_run(release, flags) is None) is runs
