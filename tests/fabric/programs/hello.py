"""One node: create, look at it, say hello, delete."""

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.show_config()
fablib.verify_and_configure()
fablib.save_config()

slice = fablib.new_slice(name="Hello FABRIC")
node = slice.add_node(name="Node1", site=fablib.get_random_site(), image="default_ubuntu_24")
slice.submit()

slice = fablib.get_slice("Hello FABRIC")
slice.show()
slice.list_nodes()
node = slice.get_node("Node1")
node.show()
stdout, stderr = node.execute("echo Hello, FABRIC from node `hostname -s`")
assert stdout == "Hello, FABRIC from node Node1\n", (stdout, stderr)
assert stderr == "", stderr
assert (
    node.execute("whoami; . /etc/os-release; echo $ID $VERSION_ID", quiet=True)[0] == "ubuntu\nubuntu 24.04\n"
)
print(node.get_ssh_command())

slice.delete()
