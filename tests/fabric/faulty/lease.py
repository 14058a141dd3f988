"""A lease that ends: the slice is dead, and its node is gone."""

import time

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()
slice = fablib.new_slice(name="short")
slice.add_node(name="node", site="SEAT")
slice.submit(wait_interval=1)
node = fablib.get_slice("short").get_node("node")
assert node.execute("echo here", quiet=True)[0] == "here\n"
begun = time.monotonic()
while slice.get_state() != "Dead":
    assert time.monotonic() - begun < 60
    time.sleep(0.5)
    slice.update()
try:
    node.execute("echo still", quiet=True, retry=1)
except Exception as error:
    print(f"as it should: {type(error).__name__}: {error}")
else:
    raise AssertionError("a node outlived its lease")
