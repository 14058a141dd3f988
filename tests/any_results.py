"""Results of any experiment, made up: every table of a run folder, as random as its schema allows.

What a report does with them must not hang on which experiments we thought of. No number here means anything.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
from places import place

from fabbbr.manifest import CellManifest, Certificate, Check, Provenance, RunManifest
from fabbbr.physics import end_of
from fabbbr.plan.opening import open_plan
from fabbbr.spec.read import describe
from fabbbr.store import RunFolder
from fabbbr_analysis.contests import contests
from fabbbr_analysis.figures.measures import MEASURES
from fabbbr_analysis.phases import planned_phases
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.summary import _TELLING, COMPARED
from fabbbr_analysis.tables.cell import _cell_row
from fabbbr_analysis.tables.columns import FLOWS, GROUPS, cells_schema, runs_schema
from fabbbr_analysis.tables.pieces import sample_schemas

METRICS = tuple(dict.fromkeys((*(measure.column for measure in MEASURES), *_TELLING, *COMPARED)))
SHARES = ("utilisation", "ratio", "share", "jain", "fill")
SAMPLES = 5


class _Numbers:
    """The values of a condition: the same in each run or not, and some absent in all or in one.

    What is measured together is there together, as the median and the 95th percentile.
    """

    def __init__(self, random):
        self.random = random
        self.middle, self.absent = {}, {}
        self.same = random.random() < 0.3
        self.nothing = random.random() < 0.1

    def row(self, kind):
        """A function from column to value, or to None, for one row of a table."""
        lacks = {}

        def value(column):
            family = kind, column.split("_", maxsplit=1)[0]
            if family not in self.absent:
                self.absent[family] = self.random.choice([0.0, 0.0, 0.0, 0.3, 1.0])
            if family not in lacks:
                lacks[family] = self.random.random() < self.absent[family]
            return None if lacks[family] else self._of(column)

        return value

    def _of(self, column):
        if column not in self.middle:
            self.middle[column] = 0.0 if self.nothing else float(self.random.lognormal(sigma=2.0))
        spread = 0.0 if self.same else 0.1 * self.random.random()
        value = self.middle[column] * (1 + spread)
        return min(value, 1.0) if any(word in column for word in SHARES) else value


def run_set(text: str, folder: Path, *, seed: int) -> RunSet:
    """A run folder of this experiment with manifests alone, and tables in memory beside it."""
    file = folder / "experiment-file.yaml"
    file.write_text(text, encoding="utf-8")
    plan = open_plan(str(file), seed=1)
    random = np.random.default_rng(seed)
    manifest = RunManifest(
        experiment=describe(plan.experiment), source_name=plan.source_name, profile="default", seed=1,
        backend="guest", clock="virtual", cells=plan.cells, created="2026-11-20T12:00:00Z", claims=(),
        fabbbr_version="0.1.0",
    )  # fmt: skip
    store = RunFolder.create(folder / "run", manifest, text)
    numbers = {cell.condition: _Numbers(random) for cell in plan.cells}
    certified = random.choice([0.0, 0.9, 0.9, 1.0])
    rows = {name: [] for name in ("runs", "flows", "groups", *sample_schemas())}
    for cell in plan.cells:
        stored = _stored(cell, certified=random.random() < certified)
        store.begin(cell.id)
        store.commit(cell.id, stored)
        _add(rows, cell, stored, numbers[cell.condition], random)
    cells = cells_schema(dict.fromkeys(key for cell in plan.cells for key in cell.axes))
    schemas = {"runs": runs_schema(cells, METRICS), "flows": FLOWS, "groups": GROUPS, **sample_schemas()}
    frames = {name: _frame(rows[name], schema) for name, schema in schemas.items()}
    frames["cells"] = frames["runs"][cells.names]
    return RunSet.from_frames(
        frames, experiment=plan.experiment.id, path=folder / "run", manifest=store.manifest
    )


def _stored(cell, *, certified):
    check = Check(name="rtt", passed=certified, asked="10 ms", measured="10 ms")
    return CellManifest(
        cell=cell,
        status="certified" if certified else "uncertified",
        reason=None if certified else "rtt: 10 ms",
        certificate=Certificate(checks=(check,)),
        provenance=Provenance(fabbbr_version="0.1.0", testbed=place()),
        virtual_s=10.0,
        wall_s=1.0,
        files={},
    )


def _add(rows, cell, stored, numbers, random):
    end_s = end_of(cell.flows, cell.links).seconds
    kept = SimpleNamespace(manifest=stored)
    value = numbers.row("runs")
    rows["runs"].append(_cell_row(kept) | {metric: value(metric) for metric in METRICS})
    for flow in cell.flows:
        own = {"flow": flow.index, "group": flow.group, "cca": flow.cca, "start_s": flow.start.seconds}
        ends = {"sender": flow.sender, "receiver": flow.receiver, "outcome": "completed", "streams": 1}
        rows["flows"].append(_filled(FLOWS, numbers, own | ends | {"cell_id": cell.id}))
    groups = contests(cell)
    for phase in planned_phases(cell):
        for group in groups:
            flows = [flow for flow in cell.flows if flow.group == group]
            known = {
                "cell_id": cell.id, "phase": phase.number, "phase_name": phase.name, "group": group,
                "phase_start_s": phase.start_s, "phase_end_s": phase.end_s, "begins_with": phase.begins_with,
                "cca": flows[0].cca, "n_flows": len(flows), "implementation": None, "profile": None,
                "competes_in": groups[group],
                "sized": any(flow.size is not None for flow in flows),
                "self_limited": any(not flow.elastic for flow in flows),
                "active_s": phase.end_s - phase.start_s,
                "fair_share": len(flows) / len(cell.flows) if len(groups) > 1 else None,
            }  # fmt: skip
            rows["groups"].append(_filled(GROUPS, numbers, known))
    for name, schema in sample_schemas().items():
        for at in range(SAMPLES if random.random() < 0.8 else 0):
            t_s = end_s * at / SAMPLES
            flow = cell.flows[at % len(cell.flows)]
            known = {
                "cell_id": cell.id, "flow": flow.index, "group": flow.group, "t_s": t_s, "start_s": t_s,
                "end_s": t_s + 1.0, "omitted": False, "side": "receiver" if name == "intervals" else "sender",
                "stream": 0, "host": flow.sender, "cca": flow.cca, "role": "bottleneck", "kind": "tbf",
                "link": cell.trunk.name, "node": cell.trunk.a, "dropped": False, "app_limited": False,
            }  # fmt: skip
            rows[name].append(_filled(schema, numbers, known))


def _filled(schema, numbers, known):
    """A row: what is known, random numbers, and no text but that."""
    value = numbers.row(schema.names[-1])
    return {
        field.name: known[field.name]
        if field.name in known
        else value(field.name)
        if _is_number(field)
        else None
        for field in schema
    }


def _is_number(field):
    return pa.types.is_floating(field.type) or pa.types.is_integer(field.type)


def _frame(rows, schema) -> pd.DataFrame:
    whole = [
        {
            field.name: int(row[field.name])
            if pa.types.is_integer(field.type) and row.get(field.name) is not None
            else row.get(field.name)
            for field in schema
        }
        for row in rows
    ]
    return pa.Table.from_pylist(whole, schema=schema).to_pandas()
