"""Several slices side by side, and one command on ten nodes at once."""

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

small = []
for name in ("first", "second"):
    slice = fablib.new_slice(name=name)
    slice.add_node(name="n0", site="WASH")
    small.append(slice)
    slice.submit(wait=False, progress=False, post_boot_config=False, wait_ssh=False)
big = fablib.new_slice(name="big")
for number in range(10):
    big.add_node(name=f"node{number}", site="UCSD")
big.submit()

threads = [
    node.execute_thread("hostname; sleep 1; hostname -s") for node in fablib.get_slice("big").get_nodes()
]
answered = sorted(thread.result()[0] for thread in threads)
assert answered == sorted(f"node{n}\nnode{n}\n" for n in range(10)), answered

for slice in small:
    slice.wait(interval=1)
fablib.list_slices()
assert {slice.get_name() for slice in fablib.get_slices()} == {"first", "second", "big"}
assert fablib.get_slice("second").get_state() == "StableOK"
try:
    fablib.new_slice(name="first").submit()
except Exception as error:
    print(f"as it should: {type(error).__name__}: {str(error)[:200]}")
fablib.delete_all(progress=False)
