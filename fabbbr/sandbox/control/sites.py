"""FABRIC's sites as of 2026, with positions to the nearest city; sizes and states are the double's own."""

from __future__ import annotations

from typing import Literal

from fabbbr.record import Record

State = Literal["Active", "PartMaint", "Maint"]

COMPONENTS = {
    "SharedNIC-ConnectX-6": 381,
    "SmartNIC-ConnectX-6": 2,
    "SmartNIC-ConnectX-5": 2,
    "NVME-P4510": 4,
}
"""Of each host. A few sites have more, see ``EXTRAS``."""

EXTRAS = {
    "TACC": {"SmartNIC-ConnectX-7-100": 2},
    "SALT": {"SmartNIC-ConnectX-7-100": 2, "SmartNIC-ConnectX-7-400": 2},
    "STAR": {"SmartNIC-ConnectX-7-400": 2},
    "UCSD": {"GPU-RTX6000": 2, "GPU-Tesla T4": 2},
    "CLEM": {"GPU-RTX6000": 2},
    "UTAH": {"FPGA-Xilinx-U280": 1},
}
HOST_CORES = 128
HOST_RAM_GB = 512
HOST_DISK_GB = 2400


class Site(Record):
    """A site; ``position`` in degrees of latitude and longitude."""

    name: str
    place: str
    position: tuple[float, float]
    hosts: int = 3
    state: State = "Active"
    ipv4_management: bool = False

    def host_names(self) -> tuple[str, ...]:
        """Its workers, as FABRIC names them."""
        return tuple(f"{self.name.lower()}-w{n}.fabric-testbed.net" for n in range(1, self.hosts + 1))


SITES = {
    site.name: site
    for site in (
        Site(name="AMST", place="Amsterdam, Netherlands", position=(52.36, 4.95)),
        Site(name="ATLA", place="Atlanta, GA, USA", position=(33.76, -84.39)),
        Site(name="BRIST", place="Bristol, UK", position=(51.46, -2.60), state="Maint"),
        Site(name="CERN", place="Meyrin, Switzerland", position=(46.23, 6.05)),
        Site(name="CLEM", place="Clemson, SC, USA", position=(34.68, -82.82)),
        Site(name="DALL", place="Dallas, TX, USA", position=(32.80, -96.82)),
        Site(name="EDC", place="Urbana, IL, USA", position=(40.10, -88.24)),
        Site(name="EDUKY", place="Lexington, KY, USA", position=(38.03, -84.50), hosts=5),
        Site(name="FIU", place="Miami, FL, USA", position=(25.75, -80.37)),
        Site(name="GATECH", place="Atlanta, GA, USA", position=(33.78, -84.40)),
        Site(name="GPN", place="Kansas City, MO, USA", position=(39.03, -94.58)),
        Site(name="HAWI", place="Honolulu, HI, USA", position=(21.30, -157.82)),
        Site(name="INDI", place="Indianapolis, IN, USA", position=(39.77, -86.16)),
        Site(name="KANS", place="Kansas City, MO, USA", position=(39.10, -94.58)),
        Site(name="LOSA", place="Los Angeles, CA, USA", position=(34.05, -118.26)),
        Site(name="MASS", place="Holyoke, MA, USA", position=(42.20, -72.61), ipv4_management=True),
        Site(name="MAX", place="College Park, MD, USA", position=(38.99, -76.94), ipv4_management=True),
        Site(name="MICH", place="Ann Arbor, MI, USA", position=(42.29, -83.71), ipv4_management=True),
        Site(name="NCSA", place="Urbana, IL, USA", position=(40.10, -88.22)),
        Site(name="NEWY", place="New York, NY, USA", position=(40.74, -74.00)),
        Site(name="PRIN", place="Princeton, NJ, USA", position=(40.35, -74.62)),
        Site(name="PSC", place="Pittsburgh, PA, USA", position=(40.43, -79.75)),
        Site(name="RUTG", place="Piscataway, NJ, USA", position=(40.50, -74.45), state="PartMaint"),
        Site(name="SALT", place="Salt Lake City, UT, USA", position=(40.76, -111.90)),
        Site(name="SEAT", place="Seattle, WA, USA", position=(47.61, -122.33)),
        Site(name="SRI", place="Menlo Park, CA, USA", position=(37.46, -122.17)),
        Site(name="STAR", place="Chicago, IL, USA", position=(41.90, -87.62), ipv4_management=True),
        Site(name="TACC", place="Austin, TX, USA", position=(30.39, -97.73), ipv4_management=True),
        Site(name="TOKY", place="Tokyo, Japan", position=(35.71, 139.76)),
        Site(name="UCSD", place="La Jolla, CA, USA", position=(32.89, -117.24)),
        Site(name="UTAH", place="Salt Lake City, UT, USA", position=(40.75, -111.84)),
        Site(name="WASH", place="McLean, VA, USA", position=(38.92, -77.21)),
    )
}
POSITIONS = {name: site.position for name, site in SITES.items()}
MAINTAINED_HOST = 1
"""At a site in part maintenance the first host is the one that is down."""
