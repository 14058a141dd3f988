"""A modification that cannot be granted: ModifyError, then StableError, and the slice as it was."""

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()
slice = fablib.new_slice(name="stuck")
slice.add_node(name="node", site="SRI")
slice.submit(wait_interval=1)
slice = fablib.get_slice("stuck")
slice.add_node(name="more", site="SRI")
try:
    slice.submit(wait_interval=1, progress=False, post_boot_config=False, wait_ssh=False)
except Exception as error:
    print(f"as it may: {type(error).__name__}: {str(error)[:300]}")
slice = fablib.get_slice("stuck")
print(slice.get_state())
assert slice.get_state() in {"ModifyError", "StableError"}, slice.get_state()
assert slice.get_node("node").execute("echo here", quiet=True)[0] == "here\n"
slice.delete()
