"""Round-trip times between sites: measured on FABRIC where somebody published them, else by the map."""

from __future__ import annotations

import math
from collections.abc import Mapping

MEASURED_RTT_MS = {
    frozenset({"DALL", "TACC"}): 6.0,
    frozenset({"DALL", "WASH"}): 27.0,
    frozenset({"DALL", "SALT"}): 26.0,
    frozenset({"SALT", "FIU"}): 44.0,
    frozenset({"GPN", "DALL"}): 61.0,
    frozenset({"UTAH", "WASH"}): 72.0,
    frozenset({"GPN", "FIU"}): 113.0,
    frozenset({"UCSD", "MASS"}): 57.0,
    frozenset({"DALL", "FIU"}): 61.0,
}
"""From the tables of the KNIT6 talk on BBR over FABRIC, and of Gomez et al., IEEE BlackSeaCom 2023."""

WITHIN_SITE_RTT_MS = 0.0
"""Left to the bridge itself; the KNIT6 talk says 0.3 ms between two machines of TACC."""

_EARTH_RADIUS_KM = 6371.0
_FIBRE_KM_PER_MS = 200.0
_DETOUR = 1.5
"""Length of the fibre over that of the great circle: between 1.4 (DALL to WASH) and 1.6 (DALL to SALT)."""

Position = tuple[float, float]
"""Latitude and longitude, in degrees."""


def rtt_ms(one: str, other: str, positions: Mapping[str, Position]) -> float:
    """Round-trip time between two sites, in milliseconds; KeyError for a site that is not on the map.

    >>> rtt_ms("TACC", "DALL", {}), rtt_ms("TACC", "TACC", {})
    (6.0, 0.0)
    """
    if one == other:
        return WITHIN_SITE_RTT_MS
    measured = MEASURED_RTT_MS.get(frozenset({one, other}))
    if measured is not None:
        return measured
    return round(2 * _DETOUR * great_circle_km(positions[one], positions[other]) / _FIBRE_KM_PER_MS, 1)


def great_circle_km(one: Position, other: Position) -> float:
    """Distance on the sphere, in kilometres (haversine)."""
    (latitude1, longitude1), (latitude2, longitude2) = (
        tuple(math.radians(degrees) for degrees in position) for position in (one, other)
    )
    half = (
        math.sin((latitude2 - latitude1) / 2) ** 2
        + math.cos(latitude1) * math.cos(latitude2) * math.sin((longitude2 - longitude1) / 2) ** 2
    )
    return 2 * _EARTH_RADIUS_KM * math.asin(math.sqrt(half))
