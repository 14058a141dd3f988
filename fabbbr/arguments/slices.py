"""Commands about slices of a testbed."""

from __future__ import annotations

import argparse
from pathlib import Path

from fabbbr.arguments.completers import definition_names, slice_names
from fabbbr.arguments.options import (
    Commands,
    add_cell_options,
    add_command,
    add_experiment,
    add_json,
    add_until_decided,
    runs_cells,
)
from fabbbr.backends.providers import DEFAULT as SLICES_ON
from fabbbr.backends.providers import PROVIDERS


def add_slice_commands(commands: Commands) -> None:
    """Add ``slice`` and its actions."""
    slices = add_command(
        commands, "slice", "slice", "make a slice of a testbed, see it, renew it, give it back"
    )
    slices.set_defaults(interrupted="what was reached is remembered, the same command continues")
    actions = slices.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    _add_slice_create(actions)
    _add_slice_run(actions)
    show = _slice_action(actions, "show", "how a slice is, its machines and what was measured")
    _where(show)
    add_json(show)
    every = actions.add_parser(
        "list", help="the slices that are remembered", description="The slices that are remembered."
    )
    add_json(every)
    renew = _slice_action(actions, "renew", "move the end of a slice's lease")
    until = renew.add_mutually_exclusive_group(required=True)
    until.add_argument("--for", dest="span", metavar="TIME", help="so long from now, as 24h")
    until.add_argument("--until", metavar="WHEN", help="as 2026-11-25T12:00, local unless it has a zone")
    _where(renew)
    add_json(renew)
    ssh = _slice_action(
        actions, "ssh", "open a shell on a machine of a slice; after --: run a command there, as root"
    )
    ssh.add_argument("machine", nargs="?", help="default: the only one")
    _where(ssh)
    add_json(ssh)
    teardown = _slice_action(actions, "teardown", "give a slice back and wait until it is gone")
    teardown.add_argument("--yes", action="store_true", help="do not ask")
    _where(teardown)
    add_json(teardown)


def _slice_action(actions: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("name", metavar="NAME", help="of the slice").completer = slice_names  # type: ignore[attr-defined]
    return parser


def _where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", choices=tuple(PROVIDERS), help="where to look for a slice that is not remembered"
    )
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help="of --backend ssh: the hosts that there are"
    )


def _add_slice_create(actions: Commands) -> None:
    create = _slice_action(
        actions, "create", "reserve a slice, or go on where that was interrupted; prepare and measure it"
    )
    create.add_argument(
        "--slice",
        dest="definition",
        required=True,
        metavar="DEF",
        help="a bundled definition or your own Python file",
    ).completer = definition_names  # type: ignore[attr-defined]
    create.add_argument(
        "--param",
        dest="parameters",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the definition; may be given again",
    )
    create.add_argument(
        "--backend", choices=tuple(PROVIDERS), default=SLICES_ON, help=f"default: {SLICES_ON}"
    )
    create.add_argument(
        "--inventory", type=Path, metavar="FILE", help="of --backend ssh: the hosts that there are"
    )
    where = create.add_mutually_exclusive_group()
    where.add_argument(
        "--sites",
        metavar="A,B",
        help="for the places of the definition in their order, one for all, place=SITE, or random",
    )
    where.add_argument(
        "--rtt", metavar="TIME", help="the two sites whose published round trip is nearest, as 40ms"
    )
    create.add_argument("--avoid", metavar="A,B", help="sites that --rtt and random leave out")
    create.add_argument("--seed", type=int, default=1, metavar="S", help="of random sites (default: 1)")
    create.add_argument(
        "--nic",
        metavar="KIND",
        default="NIC_Basic",
        help="default: NIC_Basic, a share of a card; or NIC_ConnectX_5, _6, _7_100, _7_400",
    )
    create.add_argument(
        "--network",
        choices=("L2STS", "L2PTP", "FABNetv4"),
        default="L2STS",
        help="between sites (default: L2STS, the only one whose frames can be a job's)",
    )
    create.add_argument(
        "--size", metavar="SIZE", default="default", help="default (2x8x10), knit6 (16x32x10), or CORESxGBxGB"
    )
    create.add_argument("--image", metavar="IMAGE", default="default_ubuntu_24")
    create.add_argument("--lease", metavar="TIME", default="24h", help="default: 24h")
    create.add_argument(
        "--skip-prepare", action="store_true", help="leave the machines as they are, without Ansible"
    )
    create.add_argument(
        "--prepare-with",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a variable of the playbook prepare.yml, as in fabbbr_ccas=[bbr2]; may be given again",
    )
    create.add_argument(
        "--trust",
        action="store_true",
        help="let a definition of your own, which is Python, run without asking",
    )
    create.add_argument("--yes", action="store_true", help="do not ask before it is reserved")
    add_json(create)


def _add_slice_run(actions: Commands) -> None:
    run = _slice_action(
        actions, "run", "run an experiment on the machines of a slice, or the cells of it that are missing"
    )
    run.set_defaults(module="run", dry_run=False, clock=None, jobs=None)
    runs_cells(run)
    add_experiment(run)
    add_cell_options(run)
    run.add_argument(
        "--emulate",
        choices=("rtt",),
        help="rtt: netem adds what the slice's round trips lack; else cells must ask for what is there",
    )
    add_until_decided(run)
    run.add_argument(
        "--no-guest",
        dest="compares",
        action="store_false",
        help="do not run the same cells in the guest too, which shows what the testbed adds",
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/EXP-NAME)")
    run.add_argument("--no-report", action="store_true", help="keep raw files only; report later")
    add_json(run)
