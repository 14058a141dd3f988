"""All testbeds that have slices, by name: the one place that knows them.

A new one is a module of its own and a line here. Its libraries are imported when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr.errors import EnvironmentUnfitError, UsageError
from fabbbr.suggest import did_you_mean
from fabbbr.version import GET_FABRIC

if TYPE_CHECKING:
    # The command line reads the names at every start: nothing heavy is imported for them.
    from fabbbr.backends.provider import Provider

DEFAULT = "fabric"
INVENTORY = "inventory"
"""The option that ``ssh`` needs: the path of its file."""


def _fabric(_: Mapping[str, str]) -> Provider:
    try:
        module = importlib.import_module("fabbbr.backends.fabric")
    except ImportError as error:
        message = f"FABRIC's library cannot be imported: {error}; {GET_FABRIC}"
        raise EnvironmentUnfitError(message) from error
    provider: Provider = module.FabricProvider()
    return provider


def _mininet(_: Mapping[str, str]) -> Provider:
    from fabbbr.backends.namespaces import NamespaceProvider

    return NamespaceProvider()


def _guest(_: Mapping[str, str]) -> Provider:
    from fabbbr.backends.guest_slices import GuestProvider

    return GuestProvider()


def _ssh(options: Mapping[str, str]) -> Provider:
    from fabbbr.backends.ssh.lab import read
    from fabbbr.backends.ssh.provider import SshProvider

    if INVENTORY not in options:
        message = "--backend ssh needs the file that says which hosts there are: --inventory lab.yaml"
        raise UsageError(message)
    return SshProvider(read(Path(options[INVENTORY])))


PROVIDERS: dict[str, Callable[[Mapping[str, str]], Provider]] = {
    "fabric": _fabric,
    "mininet": _mininet,
    "guest": _guest,
    "ssh": _ssh,
}


def open_provider(backend: str, options: Mapping[str, str]) -> Provider:
    """Open the testbed; raise UsageError for an unknown one, EnvironmentUnfitError with the remedy."""
    if backend not in PROVIDERS:
        hint = did_you_mean(backend, PROVIDERS)
        message = f"there is no testbed {backend!r}{hint}; choose one of {', '.join(PROVIDERS)}"
        raise UsageError(message)
    return PROVIDERS[backend](options)


def placement_of(backend: str, options: Mapping[str, str]) -> dict[str, str]:
    """Node → machine where the machines are there already; empty where they are made."""
    if backend != "ssh":
        return {}
    from fabbbr.backends.ssh.lab import read

    return read(Path(options[INVENTORY])).placement
