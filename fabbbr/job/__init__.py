"""From a cell to a ``Job``: everything that will happen, decided beforehand."""
