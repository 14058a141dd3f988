"""FABRIC's rules on what a project may ask for: its tags, and the words with which the orchestrator refuses.

The rules and messages are those of the orchestrator's public policy (fabricTags.OrchestratorTags); since
components are named by model, a tag of the model or of its family permits them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from fabbbr.sandbox.control.asked import Asked, AskedNode

FREE_CORES = 2
FREE_RAM_GB = 10
FREE_DISK_GB = 10
FREE_RATE_GBPS = 10
LONGEST_LEASE = timedelta(days=15)
LONGEST_LONG_LEASE = timedelta(weeks=26)
LONG_LEASE_TAG = "Slice.NoLimitLifetime"
EDUCATION_TAG = "Slice.OnlyEDUKY"

_LACKING = "Policy Violation: Your project is lacking {tags} tag {purpose}."
_SHARED = frozenset({"SharedNIC-ConnectX-6"})
_EXTERNAL = {"FABNetv4Ext": "Net.FABNetv4Ext", "FABNetv6Ext": "Net.FABNetv6Ext"}


def violations(asked: Asked, tags: Sequence[str]) -> tuple[str, ...]:
    """Every rule that the slice breaks, as the orchestrator would say it; FABRIC reports the first."""
    has = frozenset(tags)
    found = [said for node in asked.nodes for said in (*_size(node, has), *_components(node, has))]
    return (*found, *_slice(asked, has), *_networks(asked, has))


def _lacking(tags: str, purpose: str) -> str:
    return _LACKING.format(tags=tags, purpose=purpose)


def _size(node: AskedNode, has: frozenset[str]) -> Iterator[str]:
    limits = (
        ("VM.NoLimitCPU", node.cores > FREE_CORES, "to provision VM with more than 2 cores"),
        ("VM.NoLimitDisk", node.disk_gb > FREE_DISK_GB, "to provision VM with disk over 10GB"),
        ("VM.NoLimitRAM", node.ram_gb > FREE_RAM_GB, "to provision VM with more than 10GB of RAM"),
    )
    for tag, beyond, purpose in limits:
        if beyond and not has & {tag, "VM.NoLimit"}:
            yield _lacking(f"{tag} or VM.NoLimit", purpose)


def _components(node: AskedNode, has: frozenset[str]) -> Iterator[str]:
    for component in node.components:
        if component.kind in _SHARED:
            continue
        family = component.kind.partition("-")[0]
        exact = "Component." + component.kind.replace(f"{family}-", f"{family}_", 1).replace(
            "-", "_"
        ).replace(" ", "_")
        if not has & {exact, f"Component.{family}"}:
            yield _lacking(f"{exact} or Component.{family}", f"to provision a VM with {family}")


def _slice(asked: Asked, has: frozenset[str]) -> Iterator[str]:
    if len(asked.sites) > 1 and "Slice.Multisite" not in has:
        yield _lacking("Slice.Multisite", "to request a slice spanning multiple sites")
    if EDUCATION_TAG in has and asked.sites - {"EDUKY"}:
        yield "Policy Violation: Your project is only allowed to provision resources at the EDUKY site."


def _networks(asked: Asked, has: frozenset[str]) -> Iterator[str]:
    for network in asked.networks:
        if (
            network.rate_gbps is not None
            and network.rate_gbps > FREE_RATE_GBPS
            and "Net.NoLimitBW" not in has
        ):
            yield _lacking("Net.NoLimitBW", "to request links with bandwidth over 10Gbps")
        if network.kind == "PortMirror" and "Net.PortMirroring" not in has:
            yield _lacking("Net.PortMirroring", "to request a slice that uses port mirroring")
        tag = _EXTERNAL.get(network.kind)
        if tag is not None and tag not in has:
            yield _lacking(tag, f"to request {network.kind} service")


def longest_lease(tags: Sequence[str]) -> timedelta:
    """How long a lease may be from now on; FABRIC shortens what is longer and says nothing."""
    return LONGEST_LONG_LEASE if LONG_LEASE_TAG in tags else LONGEST_LEASE
