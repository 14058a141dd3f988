"""Cells that name a kernel: where there is none, and where it was built anew since."""

import pytest
from places import GUEST
from recorded_run import cell, create, record

from fabbbr import laboratory
from fabbbr.backends import mininet
from fabbbr.backends.base import refuse_kernel
from fabbbr.backends.mininet import MininetBackend
from fabbbr.backends.standing import StandingMachines
from fabbbr.errors import EnvironmentUnfitError, StoreError


def with_digest(sha256):
    ((name, machine),) = GUEST.machines.items()
    kernel = machine.kernel.model_copy(update={"sha256": sha256})
    return GUEST.model_copy(update={"machines": {name: machine.model_copy(update={"kernel": kernel})}})


class Kernels:
    """A place with these kernels."""

    def __init__(self, **digests):
        self._places = {name.replace("_", "."): with_digest(digest) for name, digest in digests.items()}

    def with_kernel(self, kernel):
        return self._places[kernel] if kernel in self._places else refuse_kernel(kernel, "it")


def test_all_kernels_that_there_are_not_are_named_at_once():
    cells = [cell(one, kernel=name) for one, name in enumerate(("6.1", "6.12", "mine"), 1)]
    with pytest.raises(EnvironmentUnfitError) as caught:
        laboratory._to_be_had(cells, Kernels(mine="m"))
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["kernel 6.1", "kernel 6.12"]


def test_cells_of_a_kernel_that_was_built_anew_are_not_mixed(tmp_path):
    ran = cell(1, kernel="mine")
    folder = create(tmp_path / "run", ran, cell(2, kernel="mine"), backend="guest", clock="virtual")
    record(folder, ran, testbed=with_digest("a" * 64))
    cells = folder.manifest.cells
    laboratory._require_same_kernels(folder, cells, Kernels(mine="a" * 64))
    with pytest.raises(
        StoreError, match=r"holds cells of another kernel mine \(sha256 aaaaaaaaaaaaaaaa\): .*--out"
    ):
        laboratory._require_same_kernels(folder, cells, Kernels(mine="b" * 64))


def test_a_host_and_a_slice_have_the_kernel_that_they_run(monkeypatch):
    monkeypatch.setattr(mininet, "lacks", list)
    monkeypatch.setattr(mininet, "tool_versions", dict)
    monkeypatch.setattr(mininet, "describe", lambda: GUEST)
    host = MininetBackend()
    for place in (host, StandingMachines(GUEST, {}, "fabbbr slice show x")):
        assert place.with_kernel(None) is GUEST
        with pytest.raises(EnvironmentUnfitError, match=r"kernel 6\.1: .* runs already"):
            place.with_kernel("6.1")
    host.close()
