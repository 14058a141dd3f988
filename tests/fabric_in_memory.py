"""A FABRIC in memory, whose answers are lost, refused or late as a test has it."""

from datetime import datetime, timedelta, timezone

from fabbbr.backends.fabric.answers import (
    GraphSeen,
    LostError,
    NodeSeen,
    RefusedError,
    Settings,
    SliceSeen,
    SliverSeen,
)
from fabbbr.reserve.records import MachineWish, Reservation, Size
from fabbbr.spec.experiment import SliceChoice

START = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)
LONGEST = timedelta(days=15)
ABSENT = RefusedError(404, "User# has no Slices")


def wish(name="mine", **machine):
    size = Size(cores=2, ram_gb=8, disk_gb=10)
    held = {"name": "h1", "site": "UTAH", "nodes": ("h1",), "size": size, "image": "u24", **machine}
    return Reservation(
        name=name,
        definition=SliceChoice(name="two_site"),
        machines=(MachineWish(**held),),
        cables=(),
        lease_s=3600,
    )


class Fabric:
    """A FABRIC in memory, with a clock that only waiting moves.

    ``faults`` says for each order to come what befalls it: "before" loses it, "after" loses its answer, an
    exception is the answer. ``changing`` is how many looks at a slice find it on its way.
    """

    def __init__(self, folder):
        self.now = START
        self.slices = {}
        self.orders = []
        self.faults = []
        self.changing = 0
        self.hidden = 0
        self.graph = GraphSeen(
            nodes=(NodeSeen(name="h1", site="UTAH", image="u24", state="Active", address="10.0.0.1"),)
        )
        self.keys = folder
        self.closed = False

    # Wire.

    def settings(self):
        return Settings(
            project_id="p",
            bastion_host="bastion.example.org",
            bastion_user="alice_1",
            bastion_key=str(self.keys / "bastion_key"),
            slice_key=str(self.keys / "slice_key"),
            slice_public_key=str(self.keys / "slice_key.pub"),
            token_file=str(self.keys / "tokens.json"),
        )

    def summary(self):
        return {"sites": [{"name": "UTAH", "state": "Active"}], "hosts": []}

    def token(self):
        return {"token": {"projects": [{"uuid": "p", "name": "mine", "tags": ["Slice.Multisite"]}]}}

    def account(self):
        raise LostError("the portal is down")

    def make_keys(self):
        pass

    def users(self):
        return {"u24": "ubuntu"}

    def named(self, name):
        if self.hidden:
            self.hidden -= 1
            return ()
        return tuple(each for each in self.slices.values() if each.name == name and each.state != "Dead")

    def slice(self, slice_id):
        if slice_id not in self.slices:
            raise ABSENT
        seen = self.slices[slice_id]
        if seen.state == "Configuring":
            self.changing -= 1
            if self.changing <= 0:
                seen = self.slices[slice_id] = seen.model_copy(update={"state": "StableOK"})
        return seen

    def full(self, slice_id):
        return self.slice(slice_id), self.graph

    def slivers(self, slice_id):
        return (SliverSeen(name="h1", state="Closed", notice="Insufficient resources : [core]"),)

    def composed(self, reservation):
        return "graph"

    def create(self, name, graphml, *, key, until):
        def made():
            if any(each.state not in ("Closing", "Dead") for each in self.named(name)):
                raise RefusedError(500, f"Slice {name} already exists")
            slice_id = f"id-{len(self.slices)}"
            end = min(until, self.now + LONGEST)
            self.slices[slice_id] = SliceSeen(id=slice_id, name=name, state="Configuring", lease_end=end)
            return slice_id

        return self._order("create", made)

    def renew(self, slice_id, until):
        def renewed():
            seen = self._stable(slice_id)
            if until < seen.lease_end:
                raise RefusedError(500, "Attempted new term end time is shorter than current slice end time")
            self.changing = 2
            end = min(until, self.now + LONGEST)
            self.slices[slice_id] = seen.model_copy(update={"lease_end": end, "state": "Configuring"})

        return self._order("renew", renewed)

    def delete(self, slice_id):
        def deleted():
            self.slices[slice_id] = self._stable(slice_id).model_copy(update={"state": "Closing"})

        return self._order("delete", deleted)

    def close(self):
        self.closed = True

    def _stable(self, slice_id):
        if slice_id not in self.slices:
            raise ABSENT
        seen = self.slices[slice_id]
        if seen.state in ("Closing", "Dead"):
            raise RefusedError(400, f"Slice# {slice_id} already closed")
        if seen.state == "Configuring":
            raise RefusedError(
                500, f"Unable to delete Slices ['{slice_id}'] that are not yet stable, try again later"
            )
        return seen

    def _order(self, what, effect):
        self.orders.append(what)
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if fault == "before":
            raise LostError("HTTP status 502")
        answer = effect()
        if fault == "after":
            raise LostError("HTTP status 502")
        return answer

    def pause(self, seconds):
        self.now += timedelta(seconds=seconds)
