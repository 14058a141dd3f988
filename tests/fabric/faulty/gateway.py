"""A gateway that breaks: before the effect a retry heals it, after it the retry meets its own slice."""

from fabrictestbed_extensions.fablib.fablib import FablibManager

fablib = FablibManager()
fablib.verify_and_configure()
fablib.save_config()

for name, made_at_first in (("healed", True), ("twice", False)):
    slice = fablib.new_slice(name=name)
    slice.add_node(name="node", site="GPN")
    try:
        slice.submit(wait=False, progress=False, wait_ssh=False, post_boot_config=False)
    except Exception as error:
        assert not made_at_first, error
        assert f"Slice {name} already exists" in str(error), error
    else:
        assert made_at_first
found = {slice.get_name() for slice in fablib.get_slices()}
assert found == {"healed", "twice"}, found
