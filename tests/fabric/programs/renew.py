"""A lease: the day that it has, three more, and as many as FABRIC gives at most."""

from datetime import datetime, timedelta, timezone

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

FORMAT = "%Y-%m-%d %H:%M:%S %z"
fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()


def left(slice):
    slice.update()
    return datetime.strptime(slice.get_lease_end(), FORMAT) - datetime.now(timezone.utc)


slice = fablib.new_slice(name="Renew")
slice.add_node(name="Node1", site="MICH")
slice.submit()
assert timedelta(hours=23, minutes=50) < left(slice) <= timedelta(days=1)

slice.renew(days=3)
assert timedelta(days=2, hours=23) < left(slice) <= timedelta(days=3)

far = (datetime.now(timezone.utc) + timedelta(days=60)).strftime(FORMAT)
fablib.get_manager().renew_slice(slice_id=slice.get_slice_id(), lease_end_time=far)
slice.wait(interval=1)
assert timedelta(days=14, hours=23) < left(slice) <= timedelta(days=15), left(slice)

near = (datetime.now(timezone.utc) + timedelta(days=2)).strftime(FORMAT)
try:
    fablib.get_manager().renew_slice(slice_id=slice.get_slice_id(), lease_end_time=near)
except Exception as error:
    assert "shorter than current slice end time" in str(error), error
else:
    raise AssertionError("a lease was shortened")
slice.delete()
