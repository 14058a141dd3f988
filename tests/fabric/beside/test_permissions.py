"""A fresh project may do little, and is told what and what to do: the sandbox has ``--tag none``."""

import pytest
from fabric_double import FAR, NEAR, completes
from fabric_wishes import cable, machine, reservation, two_sites

from fabbbr.backends.provider import ProviderError
from fabbbr.reserve.records import Size


def test_missing_permission(provider, name):
    assert provider.offer().project.tags == ()
    with pytest.raises(
        ProviderError, match=r"Policy Violation.*Slice.Multisite.*put all machines at one site"
    ):
        provider.submit(two_sites(name, NEAR, FAR))
    big = reservation(name, (machine("h1", NEAR, size=Size(cores=4, ram_gb=8, disk_gb=10)),), ())
    with pytest.raises(ProviderError, match=r"VM.NoLimitCPU.*take a smaller size, of at most 2 cores"):
        provider.submit(big)
    cards = reservation(
        name,
        (machine("h1", NEAR), machine("h2", NEAR)),
        (cable("l1", "h1", "h2", "L2Bridge", "NIC_ConnectX_6"),),
    )
    with pytest.raises(ProviderError, match=r"Component.SmartNIC_ConnectX_6.*take NIC_Basic"):
        provider.submit(cards)
    assert provider.find(name) is None
    completes(provider, reservation(name, (machine("h1", NEAR),), ()))
