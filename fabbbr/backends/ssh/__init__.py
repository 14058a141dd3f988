"""Machines that are reached by ssh: a channel to each, and a testbed of hosts that somebody has anyway."""
