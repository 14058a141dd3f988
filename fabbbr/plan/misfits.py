"""What does not fit a topology: all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fabbbr.errors import PlanError
from fabbbr.spec.document import Mistake, spell


class MisfitError(PlanError):
    """Keys that do not fit the topology; ``found`` has each with what to do about it."""

    def __init__(self, message: str, found: Sequence[Mistake] = ()) -> None:
        super().__init__(message)
        self.found = tuple(found)

    @classmethod
    def of(cls, *found: Mistake) -> MisfitError:
        """All of them."""
        return cls("\n".join(f"{spell(loc)}: {message}" for loc, message in found), found)


class Complaints:
    """Collects what does not fit, so that one thing does not hide the next."""

    def __init__(self) -> None:
        self.found: list[Mistake] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Go on after the block when it finds a misfit."""
        try:
            yield
        except MisfitError as error:
            self.found.extend(error.found)

    def refuse(self) -> None:
        """Raise all that was noted; nothing noted, no error."""
        if self.found:
            raise MisfitError.of(*dict.fromkeys(self.found))
