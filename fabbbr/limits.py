"""How much of everything an experiment may have: more than any study needs, less than stops a machine.

Beyond a limit an experiment is refused before anything is expanded. What physics, TCP or the tools bound
(rates, round trips, durations, flows) stands in :mod:`fabbbr.spec.bounds`.
"""

FILE_BYTES = 1_000_000
"""Of an experiment file; the longest that is bundled has 3 kB."""

FILE_NODES = 60_000
"""Values, lists and mappings of an experiment file: ten thousand steps."""

NESTING = 20
"""Lists and mappings inside one another; an experiment needs six."""

LIST_ITEMS = 10_000
"""Values of an axis, steps, flows: whatever stands in one list."""

TABLE_KEYS = 1000
"""Of one mapping: ``links`` may name every link of the largest bundled slice."""

TEXT_CHARACTERS = 1000
"""Of a single value or key."""

QUANTITY_CHARACTERS = 100
"""Of a number with its unit."""

AXES = 50
"""The names of more would not fit into a cell's id."""

EXCEPTIONS = 1000
CONDITIONS = 10_000
CELLS = 100_000
VALUES = 1_000_000
"""Conditions × values that the file gives to each of them."""

NODES = 2048
"""Hosts and switches of a slice: each is a name space of the emulation."""

STEPS = 100_000
"""That a trace makes: almost three hours of one that changes every 100 ms."""

OPPORTUNITIES = 1_000_000
"""Of a trace that is followed packet by packet: 100 Mbit/s for two minutes."""

SIZES = 1_000_000
"""Of flows, in one file."""

PARTS = 2_000_000
"""Hosts, switches, links, flows and steps of all cells together, and traces by the hundred characters:
``run.json`` holds each of them."""

TRACE_BYTES = 64_000_000
"""Of all traces of an experiment: 10 million opportunities, a gigabit per second for two minutes."""

CAPTURE_BYTES = 4 << 30
"""Memory that all captures of a cell take while it runs: a minute at 500 Mbit/s, at both ends of a link."""

MISTAKES_LOOKED_FOR = 1000
MISTAKES_SHOWN = 50

GUESSES = 50
"""Conditions with a mistake of whose other values is asked whether they could be meant."""
