"""Two nodes of one site, addressed by hand on a local bridge, and a ping with full-size frames."""

from ipaddress import IPv4Address, IPv4Network

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

site = "STAR"
slice = fablib.new_slice(name="L2Bridge")
node1 = slice.add_node(name="Node1", site=site)
iface1 = node1.add_component(model="NIC_Basic", name="nic1").get_interfaces()[0]
node2 = slice.add_node(name="Node2", site=site, image="default_debian_12")
iface2 = node2.add_component(model="NIC_Basic", name="nic1").get_interfaces()[0]
net1 = slice.add_l2network(name="net1", interfaces=[iface1, iface2])
assert str(net1.get_type()) == "L2Bridge"
slice.submit()

slice = fablib.get_slice("L2Bridge")
slice.list_networks()
slice.list_interfaces()
subnet = IPv4Network("192.168.1.0/24")
addresses = {"Node1": IPv4Address("192.168.1.1"), "Node2": IPv4Address("192.168.1.2")}
for name, address in addresses.items():
    iface = slice.get_node(name).get_interface(network_name="net1")
    iface.ip_addr_add(addr=address, subnet=subnet)
    iface.ip_link_up()
    slice.get_node(name).execute(f"sudo ip link set dev {iface.get_device_name()} mtu 9000", quiet=True)

node1 = slice.get_node("Node1")
stdout, stderr = node1.execute("ping -c 3 -i 0.2 -s 8900 -M do 192.168.1.2")
assert " 0% packet loss" in stdout, stdout
# Nodes are reached through the bastion alone, and see nothing of the world.
stdout, stderr = node1.execute(
    "getent hosts bastion.fabric-testbed.net; ping -c 1 -W 1 198.18.0.1", quiet=True
)
assert "100% packet loss" in stdout, stdout
slice.delete()
