"""What stands below a figure or above a table: what is shown, over how many runs, and of which run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pandas as pd

from fabbbr.counts import counted
from fabbbr.manifest import RunManifest
from fabbbr_analysis.figures.catalogue import Drawing
from fabbbr_analysis.figures.measures import in_a_sentence
from fabbbr_analysis.report.provenance import conditions, left_out
from fabbbr_analysis.wording import distinct, listing, tie

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

SHORT_DIGEST = 16
"""Hex digits of a digest that a caption gives; ``fabbbr cite`` gives all."""
_TOLD = (
    "Congestion control", "Flows in a cell", "Bottleneck", "Propagation RTT", "Buffer", "Queue discipline",
    "Token bucket", "Way back", "Injected loss", "Reordering", "Duration", "ECN", "Link trace",
    "ACK aggregation", "Segmentation offloads", "Limit of a connection", "Changes while flows run",
    "Initial window", "TCP of the hosts", "Repetitions",
)  # fmt: skip
"""What a caption tells of the conditions."""
_METHODS = {
    "t": "Student's t",
    "t, cut": "Student's t (cut where the quantity ends)",
    "expanded percentile": "the bootstrap (expanded percentiles)",
}


def of_figure(run_set: RunSet, drawing: Drawing) -> str:
    """Caption of a figure, in whole sentences and without a name or number."""
    sentences = [f"{drawing.title}.", drawing.reading]
    if drawing.means is not None:
        sentences.append(counts(drawing.means()))
    return " ".join(each for each in (*sentences, *_from(run_set)) if each)


def of_table(run_set: RunSet, title: str, summary: pd.DataFrame) -> str:
    """Caption of a table of means with their intervals."""
    says = "Means with 95 % intervals in brackets."
    return " ".join(each for each in (f"{title}.", says, counts(summary), *_from(run_set)) if each)


def counts(summary: pd.DataFrame) -> str:
    """Say over how many runs the means are, how their intervals were made, and what was left out."""
    there = summary[summary["n"] > 0]
    if there.empty:
        return ""
    least, most = int(there["n"].min()), int(there["n"].max())
    over = counted(least, "run") if least == most else f"{least} to {most} runs"
    methods = set(there["method"].dropna())
    if "t, cut" in methods:
        methods.discard("t")
    by = listing(sorted(_METHODS.get(each, each) for each in methods))
    intervals = f", intervals over runs by {by}" if most > 1 else ", so there are no intervals"
    excluded = int(there.drop_duplicates("condition")["excluded"].sum())
    left_out = f" {counted(excluded, 'run')} not certified and not averaged." if excluded else ""
    once = " Repetitions in which nothing differed are one run." if least == 1 < most else ""
    return f"A mean is of {over}{intervals}.{once}{left_out}"


def _from(run_set: RunSet) -> Iterator[str]:
    """The conditions that are shown, what made them, and the run that they are of."""
    shown = frozenset(run_set.cells["cell_id"])
    manifest = run_set.manifest
    cells = tuple(cell for cell in manifest.cells if cell.id in shown)
    yield f"Conditions: {asked(manifest.model_copy(update={'cells': cells}))}."
    if run_set.other_warm_up is not None:
        yield f"Left out of steady state: {left_out(cells, run_set.other_warm_up)}."
    yield f"{made_by(run_set)}."
    yield f"Run {manifest.experiment.get('id', manifest.source_name)}, {identity(run_set)}."


def asked(manifest: RunManifest) -> str:
    """What a reader must know of the network and its flows; what is not there is not said."""
    said = {fact.name: fact.value for fact in conditions(manifest)}
    told = [(name, said[name]) for name in _TOLD if said.get(name, "none") != "none"]
    return tie("; ".join(f"{in_a_sentence(name)} {value}" for name, value in told))


def made_by(run_set: RunSet) -> str:
    """``Linux 7.3.4 in virtual time (guest image sha256 …)``: what the numbers rest on."""
    origins = run_set.origins()
    machines = [machine for origin in origins for machine in origin.testbed.machines.values()]
    kernels = listing(distinct(machine.kernel.release for machine in machines))
    clocks = {"virtual": "in virtual time", "real": "in real time"}
    how = listing(distinct(clocks[origin.testbed.clock] for origin in origins))
    images = distinct(digest for each in machines if (digest := each.image_sha256) is not None)
    image = f" (guest image sha256 {listing([short(each) for each in images])})" if images else ""
    places = listing(distinct(origin.testbed.backend for origin in origins))
    where = "" if places == "guest" else f" on {places}"
    version = listing(distinct(origin.fabbbr_version for origin in origins))
    return f"Linux {kernels}{where} {how}{image}, fabbbr {version}"


def identity(run_set: RunSet) -> str:
    """``seed 1, digest sha256 …``: what tells the run from every other."""
    seed = f"seed {run_set.manifest.seed}"
    digest = None if run_set.found is None else run_set.found.digest
    if digest is None:
        return f"{seed}, without a digest because the run folder is damaged" if run_set.found else seed
    return f"{seed}, digest sha256 {short(digest)}"


def short(digest: str) -> str:
    """The first digits of a digest.

    >>> short("aa13282b41c312b92e2de25157502013")
    'aa13282b41c312b9…'
    """
    return f"{digest[:SHORT_DIGEST]}…"
