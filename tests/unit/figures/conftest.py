"""Small runs to draw."""

from __future__ import annotations

import dataclasses

import pytest
import synthetic

SMALL_F10 = dataclasses.replace(
    synthetic.CARDWELL_F10,
    losses=("0.001 %", "0.1 %", "15 %"),
    repeat=3,
    broken_cells=("cca=cubic,loss=0.1%,r2",),
)
SMALL_E1 = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


@pytest.fixture(scope="module")
def f10(tmp_path_factory):
    return synthetic.run_set(SMALL_F10, tmp_path_factory.mktemp("runs") / "f10", period_s=1.0)


@pytest.fixture(scope="module")
def e1(tmp_path_factory):
    return synthetic.run_set(SMALL_E1, tmp_path_factory.mktemp("runs") / "e1", period_s=1.0)
