"""Run sets whose answer is plain, made condition by condition, and their sentences."""

from dataclasses import replace

import pandas as pd

from fabbbr_analysis.answers import answer
from fabbbr_analysis.answers.rows import rows_of
from fabbbr_analysis.figures.conditions import varied
from fabbbr_analysis.runset import RunSet
from fabbbr_analysis.tables.columns import GROUPS

RUNS = {"experiment": "e", "status": "certified", "clock": "virtual", "ecn": False, "rate_changes": False}
TELLING = ("throughput_bps", "link_rate_bps", "retransmits", "rtt_median_s", "rtt_p95_s", "queue_p95_bytes")


def said(text):
    return text.replace("\u00a0", " ")


class Told:
    """A run set that is made condition by condition."""

    def __init__(self, **axes):
        self.runs, self.groups = [], []

    def condition(
        self, name, *groups, ccas="a,b", repeat=3, equal=False, phase="steady state", axes=None, **run
    ):
        """``groups``: mappings with ``group`` and, for each column, a value per run or one for all."""
        for number in range(repeat):
            cell = f"{name},r{number + 1}"
            noise = 0 if equal else number
            telling = dict.fromkeys(TELLING, 1.0 + noise)
            self.runs.append(
                RUNS
                | {
                    "cell_id": cell,
                    "repetition": number + 1,
                    "condition": name,
                    "ccas": ccas,
                    "goodput_bps": 1e6 + noise,
                    **telling,
                }
                | {f"axis_{key}": text for key, text in (axes or {}).items()}
                | run
            )
            for group in groups:
                self._add(cell, number, group, phase)
        return self

    def _add(self, cell, number, group, phase):
        values = {key: each[number] if isinstance(each, list) else each for key, each in group.items()}
        sized = values.get("sized", False)
        row = dict.fromkeys(GROUPS.names) | {
            "cell_id": cell, "phase": 0 if sized else 2, "phase_name": "whole run" if sized else phase,
            "begins_with": "warm-up", "phase_start_s": 5.0, "phase_end_s": 15.0, "active_s": 10.0,
            "cca": values["group"], "n_flows": 1,
            "sized": False, "self_limited": False,
        }  # fmt: skip
        self.groups.append(row | values)

    def run_set(self, **tables):
        runs = pd.DataFrame(self.runs)
        frames = {"runs": runs, "cells": runs, "groups": pd.DataFrame(self.groups), **tables}
        return RunSet.from_frames(frames, experiment="e")

    def answer(self, **tables):
        return answer(self.run_set(**tables))


def at_random(told, *, same_draws=True):
    """The rows of conditions in which the same came at random, and the axes."""
    run_set = told.run_set()
    axes = varied(run_set.runs)
    return [replace(row, same_draws=same_draws) for row in rows_of(run_set, axes)], axes


def group(name, goodput, **more):
    return {"group": name, "goodput_per_flow_bps": goodput, "goodput_bps": goodput, **more}
