"""Nodes that go wrong in every way, in one slice; each is found out as on FABRIC."""

import subprocess
import time

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()


def ssh(node, *command):
    """Exit status, output and complaints of the system's own client, through the bastion."""
    options = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=3", "-o", "LogLevel=ERROR")
    words = node.get_ssh_command().split()
    done = subprocess.run(
        [*words[:-1], *options, words[-1], *command], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


slice = fablib.new_slice(name="faulty")
for name in ("fine", "never", "late", "stranger", "mortal", "nowhere"):
    slice.add_node(name=name, site="TACC")
slice.submit(wait=True, wait_interval=1, progress=False, wait_ssh=False, post_boot_config=False)
slice = fablib.get_slice("faulty")
assert slice.get_state() == "StableOK", slice.get_state()
nodes = {node.get_name(): node for node in slice.get_nodes()}

for _ in range(50):
    if ssh(nodes["fine"], "true")[0] == 0:
        break
    time.sleep(0.2)
assert ssh(nodes["fine"], "hostname")[:2] == (0, "fine\n"), ssh(nodes["fine"], "hostname")
assert ssh(nodes["never"], "true")[0] == 255
status, _, said = ssh(nodes["stranger"], "true")
assert status == 255, said
assert "Permission denied" in said, said
assert nodes["nowhere"].get_management_ip() in {None, "None"}, nodes["nowhere"].get_management_ip()

begun = time.monotonic()
while ssh(nodes["late"], "true")[0] != 0:
    assert time.monotonic() - begun < 60
    time.sleep(0.5)

while ssh(nodes["mortal"], "true")[0] == 0:
    assert time.monotonic() - begun < 60
    time.sleep(0.5)
assert slice.get_state() == "StableOK", "FABRIC does not notice that a node has died"
slice.delete()
