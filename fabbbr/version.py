"""The version, and what brings the part of fabbbr that speaks with FABRIC: where every room can read them."""

__version__ = "0.1.0"
GET_FABRIC = "pip install 'fabbbr[fabric,ansible]' (compiles a package: apt-get install gcc python3-dev)"
