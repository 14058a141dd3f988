"""What the orchestrator refuses, and what comes to nothing later: message and state as on FABRIC."""

import re

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()


def refused(prepare, said):
    slice = fablib.new_slice(name="refused")
    prepare(slice)
    try:
        slice.submit(wait=False, progress=False, wait_ssh=False, post_boot_config=False, validate=False)
    except Exception as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"not refused: {said}")


refused(lambda s: s.add_node(name="big", site="TACC", cores=4), "lacking VM.NoLimitCPU or VM.NoLimit tag")
refused(
    lambda s: [s.add_node(name=f"n-{w}", site=w) for w in ("TACC", "UTAH")], "lacking Slice.Multisite tag"
)
refused(
    lambda s: s.add_node(name="smart", site="TACC").add_component(model="NIC_ConnectX_6", name="nic"),
    "lacking Component.SmartNIC_ConnectX_6 or Component.SmartNIC tag",
)

for name, site, said in (
    ("nosite", "ATLANTIS", "Site ATLANTIS does not exist"),
    ("maint", "BRIST", "in maintenance"),
    ("full", "KANS", "No candidates nodes found"),
):
    slice = fablib.new_slice(name=name)
    slice.add_node(name="node", site=site)
    try:
        slice.submit(wait_interval=1, progress=False, wait_ssh=False, post_boot_config=False, validate=False)
    except Exception as error:
        assert re.search(said, str(error)), error
    slice = fablib.get_slice(name)
    assert slice.get_state() == "StableError", (name, slice.get_state())
    assert said in slice.get_node("node").get_error_message(), slice.get_node("node").get_error_message()
    slice.delete()
