"""A double of the FABRIC testbed on one machine: control plane, bastion and nodes.

The real fablib, unmodified, with FABRIC's own host names, finds a credential manager, a core API and an
orchestrator that speak HTTPS, a bastion, and nodes that are name spaces with their own files and sshd.
``inside`` is the first program of a private world; ``outside`` makes that world on this host.

============  ===========================================================================
``control``   what FABRIC decides: tokens, policy, capacity, leases, states (no network)
``ground``    what FABRIC's machines and cables would be: name spaces, bridges, sshd
``granted``   the records that pass from the one to the other
============  ===========================================================================
"""
