"""Run sets that no emulator made: cardwell_f10 and knit6_e1 from response functions and seeded noise.

Every number is invented, so no test may take one as a result; what they offer is realistic structure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from places import place

from fabbbr.manifest import CellManifest, Certificate, Check, Provenance, RunManifest
from fabbbr.model import Bottleneck, Cell, CellLink, Flow, Host, Loss, Switch
from fabbbr.store import RunFolder
from fabbbr.units import Duration, Rate, Ratio, bdp_bytes
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.tables.columns import GROUPS

CAPACITY_SHARE = 0.956
SEGMENT_BYTES = 1448


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is varied, and what everything else is."""

    experiment: str
    title: str
    source: str
    ccas: tuple[str, ...]
    losses: tuple[str, ...]
    rtts: tuple[str, ...]
    rate: str
    repeat: int
    buffer_bdp: float
    duration_s: float = 60.0
    claims: tuple[str, ...] = ()
    clock: str = "virtual"
    broken_cells: tuple[str, ...] = ()


CARDWELL_F10 = Plan(
    experiment="cardwell_f10",
    title="Goodput under random loss",
    source="Cardwell et al. 2016, Fig. 10",
    ccas=("cubic", "bbr1"),
    losses=("0.001 %", "0.01 %", "0.1 %", "1 %", "5 %", "10 %", "15 %", "25 %"),
    rtts=("100 ms",),
    rate="100 Mbit/s",
    repeat=5,
    buffer_bdp=10,
    claims=("C10.1", "C10.2", "C10.3", "C10.4", "C10.5", "C10.6", "C10.7"),
    broken_cells=("cca=cubic,loss=0.01%,r2",),
)
KNIT6_E1 = Plan(
    experiment="knit6_e1",
    title="Throughput against RTT under light loss",
    source="Gomez et al. 2023, Fig. 3",
    ccas=("cubic", "reno", "htcp", "bbr1"),
    losses=("0.837 %",),
    rtts=("0.3 ms", "6 ms", "27 ms", "40 ms", "61 ms", "72 ms", "113 ms"),
    rate="200 Mbit/s",
    repeat=5,
    buffer_bdp=1,
    claims=("K1.1", "K1.2", "K1.3"),
    clock="real",
)
SMALL_F10 = replace(
    CARDWELL_F10,
    losses=("0.001 %", "0.1 %", "15 %"),
    repeat=3,
    broken_cells=("cca=cubic,loss=0.1%,r2",),
)
SMALL_E1 = replace(KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


def run_set(plan: Plan, folder: Path, *, seed: int = 1, period_s: float = 0.5, gain: float = 1.0) -> RunSet:
    """Write a run folder for ``plan`` and return its tables; ``gain`` scales every goodput."""
    random = np.random.default_rng(seed)
    cells = tuple(_cells(plan, seed))
    manifest = _manifest(plan, cells, seed)
    store = RunFolder.create(folder, manifest, f"id: {plan.experiment}\n")
    tables: dict[str, list[pd.DataFrame]] = {"sockets": [], "queues": [], "intervals": []}
    runs, flows, groups = [], [], []
    for cell in cells:
        stored = manifest_of(plan, cell)
        store.begin(cell.id)
        store.commit(cell.id, stored)
        row = _run_row(plan, cell, stored, random, gain=gain)
        runs.append(row)
        flows.append(_flow_row(cell, row))
        groups += _group_rows(cell, row)
        for name, frame in _samples(cell, row, random, period_s).items():
            tables[name].append(frame)
    frame = pd.DataFrame(runs)
    frames = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    frames |= {"cells": frame, "runs": frame, "flows": pd.DataFrame(flows), "groups": pd.DataFrame(groups)}
    return RunSet.from_frames(frames, experiment=plan.experiment, path=folder, manifest=manifest)


def changed(original: RunSet, *, manifest: RunManifest | None = None, **frames: pd.DataFrame) -> RunSet:
    """Return the run set with some of its tables, or its manifest, replaced."""
    before = {
        "cells": original.cells,
        "flows": original.flows,
        "groups": original.groups,
        "intervals": original.intervals,
        "runs": original.runs,
        "sockets": original.sockets(),
        "queues": original.queues(),
    }
    return RunSet.from_frames(
        before | frames,
        experiment=original.experiment,
        path=original.path,
        manifest=manifest or original.manifest,
    )


def _cells(plan: Plan, seed: int) -> Iterator[Cell]:
    conditions = itertools.product(range(1, plan.repeat + 1), plan.ccas, plan.losses, plan.rtts)
    for number, (repetition, cca, loss, rtt) in enumerate(conditions):
        axes = {"cca": cca}
        axes |= {"loss": loss} if len(plan.losses) > 1 else {}
        axes |= {"rtt": rtt} if len(plan.rtts) > 1 else {}
        condition = ",".join(f"{key}={text.replace(' ', '')}" for key, text in axes.items())
        yield _cell(plan, axes, condition, repetition, seed=seed * 10**12 + number, loss=loss, rtt=rtt)


def _cell(
    plan: Plan, axes: dict[str, str], condition: str, repetition: int, *, seed: int, loss: str, rtt: str
) -> Cell:
    rate, span = Rate.parse(plan.rate), Duration.parse(rtt)
    bdp = int(bdp_bytes(rate, span))
    trunk = CellLink(
        name="trunk",
        a="s1",
        b="h2",
        delay=Duration(span.ns // 2),
        loss=Loss(rate=Ratio.parse(loss)),
        bottleneck=Bottleneck(
            rate=rate,
            buffer_bytes=int(plan.buffer_bdp * bdp),
            buffer_asked=f"{plan.buffer_bdp:g} BDP",
            bdp_bytes=bdp,
        ),
    )
    flow = Flow(
        index=0,
        group=axes["cca"],
        cca=axes["cca"],
        sender="h1",
        receiver="h2",
        start=Duration(0),
        duration=Duration.parse(f"{plan.duration_s:g} s"),
        rtt=span,
    )
    return Cell(
        id=f"{condition},r{repetition}",
        experiment=plan.experiment,
        condition=condition,
        axes=axes,
        repetition=repetition,
        seed=seed,
        hosts=(Host(name="h1"), Host(name="h2")),
        switches=(Switch(name="s1"),),
        links=(CellLink(name="access", a="h1", b="s1"), trunk),
        flows=(flow,),
        sample_period=Duration.parse("100 ms"),
        warm_up=Duration.parse("20 s"),
    )


def _manifest(plan: Plan, cells: tuple[Cell, ...], seed: int) -> RunManifest:
    return RunManifest(
        experiment={
            "id": plan.experiment,
            "title": plan.title,
            "source": plan.source,
            "slice": "two_site",
            "path": {"rate": plan.rate, "buffer": f"{plan.buffer_bdp:g} BDP"},
            "repeat": plan.repeat,
        },
        source_name=plan.experiment,
        profile="quick",
        seed=seed,
        backend="guest" if plan.clock == "virtual" else "mininet",
        clock="virtual" if plan.clock == "virtual" else "real",
        claims=plan.claims,
        cells=cells,
        created="2026-11-20T12:00:00Z",
        fabbbr_version="0.1.0",
    )


def manifest_of(plan: Plan, cell: Cell) -> CellManifest:
    broken = cell.id in plan.broken_cells
    rtt_ms = cell.flows[0].rtt.seconds * 1e3
    checks = (
        Check(name="rtt", passed=True, asked=f"{rtt_ms:g} ms", measured=f"{rtt_ms * 1.0002:.3f} ms"),
        Check(
            name="rate",
            passed=not broken,
            asked=plan.rate,
            measured=f"{float(plan.rate.split()[0]) * (0.91 if broken else 0.9998):.2f} Mbit/s",
            detail="12 packets of the burst are missing" if broken else "",
        ),
        Check(name="conservation", passed=True, asked="0 packets", measured="0 packets"),
    )
    return CellManifest(
        cell=cell,
        status="uncertified" if broken else "certified",
        reason="rate is 9 % below what was asked" if broken else None,
        certificate=Certificate(checks=checks),
        provenance=Provenance(
            fabbbr_version="0.1.0",
            testbed=place(
                plan.clock,
                backend="guest" if plan.clock == "virtual" else "mininet",
                tools={"iperf3": "iperf 3.12", "ss": "ss utility, iproute2-6.1.0", "tc": "iproute2-6.1.0"},
            ),
        ),
        virtual_s=plan.duration_s + 5.5,
        wall_s=3.2,
        files={},
    )


def goodput_share(cca: str, loss: float, rtt_s: float, rate_bps: float) -> float:
    """Share of the rate that ``cca`` fills: BBR 1 - p to its threshold of 20 %, else a response function."""
    if cca.startswith("bbr"):
        return (1 - loss) if loss < 0.2 else 0.006
    constant = {"cubic": 1.31, "reno": 1.22, "htcp": 2.4}[cca]
    window = constant / math.sqrt(loss)
    if cca == "cubic":
        window = max(window, 1.17 * (rtt_s / loss**3) ** 0.25 * rtt_s**0.5)
    return min(1.0, window * SEGMENT_BYTES * 8 / max(rtt_s, 1e-3) / rate_bps)


def _run_row(
    plan: Plan, cell: Cell, stored: CellManifest, random: np.random.Generator, *, gain: float
) -> dict[str, Any]:
    queue, cca = cell.bottleneck, cell.flows[0].cca
    rate, rtt_s, loss = float(queue.rate.bps), cell.flows[0].rtt.seconds, cell.trunk.loss.rate.value
    share = goodput_share(cca, loss, rtt_s, rate)
    spread = 0.004 if cca.startswith("bbr") else 0.08
    # Noise takes away and never adds, so that no two runs meet at the ceiling with the very same goodput.
    goodput = CAPACITY_SHARE * rate * share * gain * (1 - spread * abs(random.normal()))
    queue_bdp = max(0.0, 0.25 * share + 0.02 * random.normal()) if cca.startswith("bbr") else 0.4 * share**2
    segments = goodput / (1 - loss) * plan.duration_s / SEGMENT_BYTES / 8
    return {
        "cell_id": cell.id,
        "experiment": plan.experiment,
        "condition": cell.condition,
        "repetition": cell.repetition,
        "seed": cell.seed,
        "status": stored.status,
        "reason": stored.reason,
        "backend": stored.provenance.testbed.backend,
        "clock": stored.provenance.testbed.clock,
        "kernel_release": stored.provenance.testbed.kernel_releases[0],
        "timer_hz": stored.provenance.testbed.least_timer_hz,
        "virtual_s": stored.virtual_s,
        "rate_bps": rate,
        "rate_changes": False,
        "rtt_s": rtt_s,
        "buffer_bytes": queue.buffer_bytes,
        "bdp_bytes": queue.bdp_bytes,
        "buffer_bdp": queue.buffer_bytes / queue.bdp_bytes,
        "loss_ratio": loss,
        "loss_position": "after_bottleneck",
        "aqm": "taildrop",
        "ecn": False,
        "mtu_bytes": 1500,
        "ccas": cca,
        "bbr2_variant": cell.flows[0].profile if cca == "bbr2" else None,
        "n_flows": 1,
        "duration_s": plan.duration_s,
        "warm_up_s": 20.0,
        **{f"axis_{key}": text for key, text in cell.axes.items()},
        "goodput_bps": goodput,
        "goodput_steady_bps": goodput * 1.01,
        "throughput_bps": goodput / (1 - loss),
        "link_rate_bps": goodput / (1 - loss) / CAPACITY_SHARE,
        "utilisation": goodput / (rate * CAPACITY_SHARE),
        "retransmits": int(segments * loss),
        "retransmit_ratio": loss,
        "rtt_median_s": rtt_s * (1 + queue_bdp),
        "rtt_p95_s": rtt_s * (1.02 + queue_bdp),
        "rtt_max_s": rtt_s * (1.3 + queue_bdp),
        "queue_delay_median_s": rtt_s * queue_bdp,
        "queue_median_bytes": queue_bdp * queue.bdp_bytes,
        "queue_median_bdp": queue_bdp,
        "queue_median_fill": queue_bdp / plan.buffer_bdp,
        "queue_drops": 0,
        "injected_drops": int(segments * loss),
        "jain_flows": None,
        "jain_groups": None,
        "convergence_s": None,
        "completion_mean_s": None,
    }


def _flow_row(cell: Cell, row: Mapping[str, Any]) -> dict[str, Any]:
    flow = cell.flows[0]
    copied = {key: row[key] for key in ("cell_id", "goodput_bps", "throughput_bps", "retransmits")}
    return copied | {
        "flow": 0,
        "group": flow.group,
        "cca": flow.cca,
        "sender": flow.sender,
        "receiver": flow.receiver,
        "streams": 1,
        "implementation": None,
        "start_s": 0.0,
        "receiver_zero_s": 0.0,
        "received_bytes": row["goodput_bps"] / 8 * row["duration_s"],
        "sent_bytes": row["throughput_bps"] / 8 * row["duration_s"],
        "receiver_s": row["duration_s"],
        "sender_s": row["duration_s"],
        "outcome": "completed",
        "error": None,
    }


def _group_rows(cell: Cell, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every phase has the goodput of the whole run."""
    end_s, warm_up_s = row["duration_s"], row["warm_up_s"]
    phases = [("whole run", 0.0, end_s), ("start-up", 0.0, warm_up_s), ("steady state", warm_up_s, end_s)]
    for number, (name, start_s, until_s) in enumerate(phases):
        yield {field.name: None for field in GROUPS} | {
            "cell_id": cell.id, "phase": number, "phase_name": name, "phase_start_s": start_s,
            "phase_end_s": until_s, "begins_with": "warm-up" if number == 2 else "start",
            "group": cell.flows[0].group, "cca": cell.flows[0].cca, "n_flows": 1,
            "sized": False, "self_limited": False,
            "received_bytes": int(row["goodput_bps"] / 8 * (until_s - start_s)),
            "active_s": until_s - start_s,
            "goodput_bps": row["goodput_bps"], "goodput_per_flow_bps": row["goodput_bps"],
            "rtt_median_s": row["rtt_median_s"], "retransmit_ratio": row["retransmit_ratio"],
        }  # fmt: skip


def _samples(
    cell: Cell, row: Mapping[str, Any], random: np.random.Generator, period_s: float
) -> dict[str, pd.DataFrame]:
    """Time series whose means agree with the row: BBR with its probe-RTT dips, the others as a saw."""
    t = np.arange(0.0, row["duration_s"], period_s)
    bbr = row["ccas"].startswith("bbr")
    saw = 0.7 + 0.3 * (t % 12) / 12 if not bbr else np.where(t % 10 < 0.2, 0.3, 1.0)
    seconds = np.arange(0.0, row["duration_s"], 1.0)
    wave = np.interp(seconds, t, saw / saw.mean())
    rtt = row["rtt_s"] * (1 + row["queue_median_bdp"] * saw / saw.mean()) * (1 + 0.01 * random.random(len(t)))
    estimate = row["goodput_bps"] * (1.04 + 0.02 * random.normal(size=len(t)))
    sockets = pd.DataFrame(
        {
            "cell_id": cell.id,
            "host": "h1",
            "t_s": t,
            "flow": 0,
            "side": "sender",
            "cca": "bbr" if bbr else row["ccas"],  # as the kernel calls it
            "rtt_s": rtt,
            "bbr_bw_bps": estimate if bbr else np.full(len(t), np.nan),
        }
    )
    queues = pd.DataFrame(
        {
            "cell_id": cell.id,
            "node": "s1",
            "interface": "s1-eth1",
            "role": "bottleneck",
            "link": "trunk",
            "t_s": t,
            "backlog_bytes": np.round(row["queue_median_bytes"] * saw / saw.mean()),
        }
    )
    intervals = pd.DataFrame(
        {
            "cell_id": cell.id,
            "flow": 0,
            "stream": 0,
            "side": "receiver",
            "start_s": seconds,
            "end_s": seconds + 1.0,
            "throughput_bps": row["goodput_bps"] * wave * (1 + 0.01 * random.normal(size=len(seconds))),
        }
    )
    return {"sockets": sockets, "queues": queues, "intervals": intervals}
