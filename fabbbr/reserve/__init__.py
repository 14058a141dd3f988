"""From a slice definition to what is asked of a testbed: pure."""
