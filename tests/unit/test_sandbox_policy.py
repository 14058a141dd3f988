"""What a project may ask for, by table: the tag that is missing, and FABRIC's words for it."""

import pytest

from fabbbr.sandbox.control.asked import Asked, AskedComponent, AskedNetwork, AskedNode
from fabbbr.sandbox.control.policy import longest_lease, violations


def node(name="n1", site="TACC", cores=2, ram_gb=8, disk_gb=10, kinds=()):
    components = tuple(
        AskedComponent(id=f"{name}-{number}", name=f"c{number}", kind=kind, ports=())
        for number, kind in enumerate(kinds)
    )
    return AskedNode(
        id=name, name=name, site=site, host=None, image="default_rocky_9", cores=cores, ram_gb=ram_gb,
        disk_gb=disk_gb, components=components,
    )  # fmt: skip


def network(kind, rate_gbps=None):
    return AskedNetwork(id="net", name="net", kind=kind, site=None, rate_gbps=rate_gbps)


FRESH = Asked(nodes=(node(),))

LACKING = [
    (
        Asked(nodes=(node(cores=3),)),
        "VM.NoLimitCPU or VM.NoLimit tag to provision VM with more than 2 cores.",
    ),
    (
        Asked(nodes=(node(ram_gb=11),)),
        "VM.NoLimitRAM or VM.NoLimit tag to provision VM with more than 10GB of RAM.",
    ),
    (
        Asked(nodes=(node(disk_gb=11),)),
        "VM.NoLimitDisk or VM.NoLimit tag to provision VM with disk over 10GB.",
    ),
    (
        Asked(nodes=(node(), node("n2", "UTAH"))),
        "Slice.Multisite tag to request a slice spanning multiple sites.",
    ),
    (
        Asked(nodes=(node(kinds=("SmartNIC-ConnectX-6",)),)),
        "Component.SmartNIC_ConnectX_6 or Component.SmartNIC tag to provision a VM with SmartNIC.",
    ),
    (
        Asked(nodes=(node(kinds=("GPU-Tesla T4",)),)),
        "Component.GPU_Tesla_T4 or Component.GPU tag to provision a VM with GPU.",
    ),
    (
        Asked(nodes=(node(),), networks=(network("L2PTP", 25),)),
        "Net.NoLimitBW tag to request links with bandwidth over 10Gbps.",
    ),
    (
        Asked(nodes=(node(),), networks=(network("PortMirror"),)),
        "Net.PortMirroring tag to request a slice that uses port mirroring.",
    ),
    (
        Asked(nodes=(node(),), networks=(network("FABNetv4Ext"),)),
        "Net.FABNetv4Ext tag to request FABNetv4Ext service.",
    ),
]


@pytest.mark.parametrize(("asked", "lacking"), LACKING)
def test_project_without_the_tag_is_told_which_one(asked, lacking):
    assert violations(asked, ()) == (f"Policy Violation: Your project is lacking {lacking}",)


@pytest.mark.parametrize(("asked", "lacking"), LACKING)
def test_every_tag_that_a_refusal_names_is_enough(asked, lacking):
    named = [word for word in lacking.split(" tag ")[0].split() if word != "or"]
    assert [violations(asked, (tag,)) for tag in named] == [()] * len(named)


def test_fresh_project_may_have_two_cores_10_gb_and_shared_cards():
    largest = node(cores=2, ram_gb=10, disk_gb=10, kinds=("SharedNIC-ConnectX-6",) * 4)
    assert violations(Asked(nodes=(largest,), networks=(network("L2Bridge"), network("L2STS", 10))), ()) == ()


def test_education_project_stays_at_its_site():
    assert violations(FRESH, ("Slice.OnlyEDUKY",)) != ()
    assert violations(Asked(nodes=(node(site="EDUKY"),)), ("Slice.OnlyEDUKY",)) == ()


@pytest.mark.parametrize(("tags", "days"), [((), 15), (("Slice.NoLimitLifetime",), 26 * 7)])
def test_longest_lease_in_days(tags, days):
    assert longest_lease(tags).days == days
