"""``kernel:`` in experiment files, alone and as an axis."""

import pytest

from fabbbr.errors import SpecError
from fabbbr.plan import expand
from fabbbr.plan.definitions import load
from fabbbr.spec import read

FILE = """
id: kernels
title: Kernels
repeat: 1
slice: two_site
path: {{rate: 10 Mbit/s, rtt: 20 ms}}
flows: [{{cca: cubic, duration: 5 s}}]
{more}
"""

NO_NAME = "is no name of a kernel; write one as 6.12, default or ./linux"


def planned(more, **how):
    experiment = read.parse(FILE.format(more=more), source="k.yaml", **how)
    return expand.cells(experiment, load, seed=1)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("6.1", "6.1"),
        ("v6.10", "6.10"),
        ("linux-6.12", "6.12"),
        ("default", "default"),
        ("./linux", "linux"),
        ("../trees/net-next", "net-next"),
    ],
)
def test_a_kernel_is_known_by_its_name_and_a_tree_by_its_folder(written, name):
    (cell,) = planned(f"kernel: {written}")
    assert cell.kernel == name


def test_without_the_key_it_is_that_of_the_image():
    (cell,) = planned("")
    assert cell.kernel is None


def test_an_axis_of_that_name_gives_the_key_its_values():
    cells = planned("vary: {kernel: [6.1, v6.10, ./linux, default]}")
    assert {cell.id: cell.kernel for cell in cells} == {
        "kernel=6.1,r1": "6.1",
        "kernel=v6.10,r1": "6.10",
        "kernel=linux,r1": "linux",
        "kernel=default,r1": "default",
    }


def test_the_reference_may_be_written_out_and_an_axis_may_be_called_otherwise():
    for more in (
        "kernel: $kernel\nvary: {kernel: [6.1, default]}",
        "kernel: $linux\nvary: {linux: [6.1, default]}",
    ):
        assert {cell.kernel for cell in planned(more)} == {"6.1", "default"}


def test_a_profile_and_the_command_line_replace_its_values():
    more = "vary: {kernel: [6.1, default]}\nquick: {kernel: [6.12]}"
    assert {cell.kernel for cell in planned(more, profile="quick")} == {"6.12"}
    assert {cell.kernel for cell in planned(more, overrides=("kernel=5.10,6.1",))} == {"5.10", "6.1"}
    assert {cell.kernel for cell in planned("", overrides=("vary.kernel=[5.10, 6.1]",))} == {"5.10", "6.1"}
    assert {cell.kernel for cell in planned("", overrides=("kernel=5.10",))} == {"5.10"}


def test_other_keys_of_a_single_value_vary_in_the_same_way():
    cells = planned("vary: {queue_delay: [samples, packets]}")
    assert {cell.queue_delay for cell in cells} == {"samples", "packets"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("kernel: 6.1\nvary: {kernel: [6.1, 6.12]}",
         "k.yaml:9: vary.kernel: kernel varies, and has a value of its own at k.yaml:8; keep one"),
        ("kernel: a b", f"k.yaml:8: kernel: 'a b' {NO_NAME}"),
        ("vary: {kernel: [-x, 6.1]}", f"k.yaml:8: kernel = $kernel: '-x' {NO_NAME}"),
        ("vary: {path: [a, b]}", "vary.path: an experiment key has this name; give the axis another name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_once_and_where(more, said):
    with pytest.raises(SpecError) as caught:
        planned(more)
    assert said in str(caught.value)
    assert str(caught.value).count("kernel varies") <= 1
    assert "never used" not in str(caught.value) or "path" in more
