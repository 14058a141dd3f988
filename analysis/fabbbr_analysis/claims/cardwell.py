"""Cardwell et al. 2016, goodput under random loss (CACM Fig. 10), and the arithmetic of its section on B4."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fabbbr.units import TCP_IPV4_HEADER_BYTES
from fabbbr_analysis import models
from fabbbr_analysis.claims.observe import certified, per_rate
from fabbbr_analysis.claims.records import Arithmetic, Band, Claim, Evidence, Part
from fabbbr_analysis.claims.sample import (
    Array,
    Means,
    MissingConditionError,
    Sample,
    highest,
    lowest,
    sample_of,
)

_BY_LOSS = ("cca", "loss_ratio")
_LOWEST_LOSS = 1e-5


def over_limit(x: Means, loss: float) -> Array:
    """BBR's goodput over (1 - p) of its own at 0.001 % loss: the limit as the figure draws it."""
    return x["bbr1", loss] / ((1 - loss) * x["bbr1", _LOWEST_LOSS])


def meets_the_limit(x: Means) -> Array:
    """Smallest :func:`over_limit` from 0.01 to 5 %."""
    levels = {loss for loss in x.levels("bbr1") if 1e-4 <= loss < 0.05}
    absent = [loss for loss in (1e-4, 1e-3, 1e-2, 2e-2) if ("bbr1", loss) not in x]
    if absent:
        x.remarks.append("without " + ", ".join(f"{loss * 100:g} %" for loss in absent) + " loss")
    return lowest([over_limit(x, loss) for loss in sorted(levels | {0.05})])


def is_close_to_the_limit(x: Means) -> Array:
    """Smallest :func:`over_limit` at 10 and 15 %."""
    return lowest([over_limit(x, loss) for loss in (0.10, 0.15)])


def collapse(x: Means) -> Array:
    """BBR at 25 % over BBR at 0.001 %."""
    return x["bbr1", 0.25] / x["bbr1", _LOWEST_LOSS]


def cubic_drop(x: Means) -> Array:
    """How many times less CUBIC gets at 0.1 % than at 0.001 %."""
    return x["cubic", _LOWEST_LOSS] / x["cubic", 1e-3]


def cubic_stall(x: Means) -> Array:
    """Largest CUBIC goodput at 2 % loss or more; 2 or 5 % must be there, because goodput falls with loss."""
    levels = [loss for loss in x.levels("cubic") if loss >= 0.02]
    if not levels or levels[0] > 0.05:
        message = "no certified run of cubic at loss 2 % or 5 %"
        raise MissingConditionError(message)
    if levels[0] > 0.02:
        x.remarks.append(f"without 2 % loss: the smallest loss is {levels[0] * 100:g} %")
    return highest([x["cubic", loss] for loss in levels])


def cubic_lead(x: Means) -> Array:
    """CUBIC over BBR at 0.001 %."""
    return x["cubic", _LOWEST_LOSS] / x["bbr1", _LOWEST_LOSS]


def cubic_slope(x: Means) -> Array:
    """Slope of log goodput over log loss from 0.1 to 5 %, by least squares over the conditions."""
    levels = [loss for loss in x.levels("cubic") if 1e-3 <= loss <= 0.05]
    if len(levels) < 3:
        message = "a slope needs three losses between 0.1 and 5 % of cubic"
        raise MissingConditionError(message)
    abscissa = np.log10(levels)
    centred = abscissa - abscissa.mean()
    ordinates = np.log10([x["cubic", loss] for loss in levels])
    return np.asarray(np.tensordot(centred, ordinates, axes=1) / (centred**2).sum(), dtype=np.float64)


def at_loss(x: Means, loss: float) -> Array:
    """Quantity of CUBIC at one loss."""
    return x["cubic", loss]


def goodput_over_model(evidence: Evidence, *, experiment: str) -> Sample:
    """Goodput over CUBIC's response function for the run's own RTT, loss and MTU."""
    runs = certified(evidence[experiment])
    runs = runs[runs["loss_ratio"] > 0]
    model = models.cubic_bps(
        mss_bytes=runs["mtu_bytes"].to_numpy(dtype=np.float64) - TCP_IPV4_HEADER_BYTES,
        rtt_s=runs["rtt_s"].to_numpy(dtype=np.float64),
        loss=runs["loss_ratio"].to_numpy(dtype=np.float64),
    )
    return sample_of(runs.assign(over_model=runs["goodput_bps"] / model), axes=_BY_LOSS, value="over_model")


def f10_parts(experiment: str) -> dict[str, tuple[Part, ...]]:
    """Build the parts of C10.1 to C10.7 as measured in ``experiment``; goodput is in shares of the rate."""
    goodput = per_rate(experiment, _BY_LOSS)
    model = partial(goodput_over_model, experiment=experiment)

    def part(quantity: str, formula: Callable[[Means], Array], band: Band) -> Part:
        return Part(quantity=quantity, observe=goodput, formula=formula, band=band)

    return {
        "C10.1": (
            part("least BBR goodput / limit, 0.01 to 5 % loss", meets_the_limit, Band(low=0.95, slack=0.05)),
        ),
        "C10.2": (
            part("least BBR goodput / limit, 10 and 15 % loss", is_close_to_the_limit, Band(low=0.85)),
        ),
        "C10.3": (part("BBR goodput at 25 % / at 0.001 % loss", collapse, Band(high=0.10)),),
        "C10.4": (part("CUBIC goodput at 0.001 % / at 0.1 % loss", cubic_drop, Band(low=5, high=30)),),
        "C10.5": (part("most CUBIC goodput / rate, from 2 % loss on", cubic_stall, Band(high=0.02)),),
        "C10.6": (part("CUBIC / BBR goodput at 0.001 % loss", cubic_lead, Band(low=0.97, high=1.10)),),
        "C10.7": (
            part("slope of log goodput over log loss", cubic_slope, Band(low=-0.75, high=-0.45)),
            *(
                Part(
                    quantity=f"CUBIC goodput / model at {loss * 100:g} % loss",
                    observe=model,
                    formula=partial(at_loss, loss=loss),
                    band=Band(low=0.6, high=2.0),
                )
                for loss in (1e-3, 1e-2)
            ),
        ),
    }


CLAIMS = (
    *(Claim(id=name, parts=parts) for name, parts in f10_parts("cardwell.f10").items()),
    Claim(
        id="CA.1",
        parts=(
            Arithmetic(
                quantity="8 MiB window / 200 ms [Mbit/s]",
                value=lambda: models.window_limit_bps(window_bytes=8 * 1024**2, rtt_s=0.2) / 1e6,
                band=Band(low=334, high=336),
            ),
        ),
    ),
    Claim(
        id="CA.2",
        parts=(
            Arithmetic(
                quantity="packets a loss for CUBIC at 10 Gbit/s and 100 ms [million]",
                value=lambda: 1e-6 / models.cubic_loss_bound(rate_bps=10e9, rtt_s=0.1, packet_bytes=1500),
                band=Band(low=20, high=50),
            ),
        ),
    ),
)
