"""From an ``Experiment`` and a ``Topology`` to the ordered cells, and what they will cost."""
