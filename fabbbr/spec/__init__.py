"""From the text of an experiment file to an ``Experiment``, or every mistake in it at once."""
