"""What a shell is offered for a word that is begun: what that needs is imported when a shell asks."""

from __future__ import annotations

import argparse

from fabbbr.errors import FabbbrError


def figure_names(*, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Names of the figures that the run has."""
    from fabbbr_analysis import figures
    from fabbbr_analysis.runset import RunSet

    try:
        return figures.figure_names(RunSet.open(parsed_args.run))
    except FabbbrError:  # a folder that is no run, or not yet: there is nothing to complete
        return []


def slice_names(**_: object) -> list[str]:
    """Slices that are remembered."""
    from fabbbr.slice import state

    return list(state.names())


def kernel_names(**_: object) -> list[str]:
    """Kernels of the user's own."""
    from fabbbr.backends.guest.kernel.own import own_kernels

    return list(own_kernels())


def cca_names(**_: object) -> list[str]:
    """Congestion controls that there are."""
    from fabbbr.spec.experiment import CCAS

    return list(CCAS)


def definition_names(**_: object) -> list[str]:
    """Bundled definitions of slices."""
    from fabbbr import bundled

    return list(bundled.names("slices"))


def experiment_names(prefix: str, **_: object) -> list[str]:
    """Bundled experiments, and files."""
    from fabbbr.commands import completion

    return completion.experiments(prefix)


def axis_values(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Axes of the experiment and their values."""
    from fabbbr.commands import completion

    return completion.selectors(prefix, parsed_args.experiment)


def keys(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Keys of the experiment."""
    from fabbbr.commands import completion

    return completion.keys(prefix, parsed_args.experiment)


def bundled_names(**_: object) -> list[str]:
    """Bundled experiments alone."""
    from fabbbr import bundled

    return list(bundled.names("experiments"))
