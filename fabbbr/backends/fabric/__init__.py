"""FABRIC as a provider of slices: what is asked of it, what it says, and the way to its machines.

Only ``fablib`` and ``graph`` import FABRIC's library, inside functions: without the extra the rest works.
"""

from fabbbr.backends.fabric.provider import FabricProvider

__all__ = ["FabricProvider"]
