"""A bastion that is away for some seconds, ordered while everything runs."""

import os
import time
import urllib.request

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()
slice = fablib.new_slice(name="lonely")
slice.add_node(name="node", site="STAR")
slice.submit(wait_interval=1)
node = fablib.get_slice("lonely").get_node("node")
assert node.execute("echo before", quiet=True)[0] == "before\n"

order = urllib.request.Request(
    f"{os.environ['FABBBR_SANDBOX']}/faults", data=b"bastion-away:seconds=4", method="POST"
)
assert urllib.request.urlopen(order).status == 200
time.sleep(1)
begun = time.monotonic()
try:
    node.execute("echo during", quiet=True, retry=1)
except Exception as error:
    print(f"as it should: {type(error).__name__}: {error}")
else:
    raise AssertionError("the bastion was away, and yet somebody came through")
while time.monotonic() - begun < 60:
    try:
        answer = node.execute("echo after", quiet=True, retry=1)[0]
        break
    except Exception:
        time.sleep(0.5)
assert answer == "after\n", answer
slice.delete()
