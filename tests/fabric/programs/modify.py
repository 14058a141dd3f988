"""A slice that grows and shrinks: a node and its network are added to a running one, and taken away again."""

from ipaddress import IPv4Network

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

slice = fablib.new_slice(name="Modify")
slice.add_node(name="Node1", site="TACC")
slice.submit()

slice = fablib.get_slice("Modify")
slice.get_node("Node1").execute(
    "echo I was here > ~/mark; sleep 1000 >/dev/null 2>&1 & echo $! > ~/pid", quiet=True
)
node1 = slice.get_node("Node1")
iface1 = node1.add_component(model="NIC_Basic", name="nic1").get_interfaces()[0]
node2 = slice.add_node(name="Node2", site="TACC")
iface2 = node2.add_component(model="NIC_Basic", name="nic1").get_interfaces()[0]
net1 = slice.add_l2network(name="net1", interfaces=[iface1, iface2], subnet=IPv4Network("192.168.7.0/24"))
for iface in (iface1, iface2):
    iface.set_mode("auto")
slice.submit()

slice = fablib.get_slice("Modify")
assert {node.get_name() for node in slice.get_nodes()} == {"Node1", "Node2"}
node1 = slice.get_node("Node1")
assert node1.execute("cat ~/mark; kill -0 $(cat ~/pid) && echo alive", quiet=True)[0] == "I was here\nalive\n"
other = slice.get_node("Node2").get_interface(network_name="net1").get_ip_addr()
stdout, _ = node1.execute(f"ping -c 2 -i 0.2 {other}", quiet=True)
assert " 0% packet loss" in stdout, stdout

slice.get_network("net1").delete()
slice.get_node("Node2").delete()
slice.submit()
slice = fablib.get_slice("Modify")
assert [node.get_name() for node in slice.get_nodes()] == ["Node1"]
assert slice.get_networks() == []
assert slice.get_node("Node1").execute("cat ~/mark", quiet=True)[0] == "I was here\n"
stdout, _ = slice.get_node("Node1").execute(f"ping -c 1 -W 1 {other}", quiet=True)
assert " 0% packet loss" not in stdout, stdout
slice.delete()
