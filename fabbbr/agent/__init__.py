"""What runs on the nodes: starts flows on time, samples ss and tc, probes the path.

Standard library only and Python 3.6 or newer, because it runs under whatever Python a node has; only
``network`` imports Mininet. It gets one ``job.json`` in which everything is already decided.
"""
