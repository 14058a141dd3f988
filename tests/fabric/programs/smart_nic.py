"""Dedicated cards: a port-to-port link with a tag, an untagged wide-area one beside it, and a reboot."""

from ipaddress import IPv4Network

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

slice = fablib.new_slice(name="SmartNIC")
ports = []
for name, site, model in (("Node1", "TACC", "NIC_ConnectX_6"), ("Node2", "SALT", "NIC_ConnectX_5")):
    node = slice.add_node(name=name, site=site, image="default_ubuntu_24")
    ports.append(node.add_component(model=model, name="nic").get_interfaces())
for first, _ in ports:
    first.set_vlan("100")
ptp = slice.add_l2network(
    name="ptp", interfaces=[pair[0] for pair in ports], type="L2PTP", subnet=IPv4Network("10.77.1.0/24")
)
sts = slice.add_l2network(
    name="sts", interfaces=[pair[1] for pair in ports], type="L2STS", subnet=IPv4Network("10.77.2.0/24")
)
for pair in ports:
    for iface in pair:
        iface.set_mode("auto")
slice.submit()

slice = fablib.get_slice("SmartNIC")
slice.list_interfaces()
node1, node2 = slice.get_node("Node1"), slice.get_node("Node2")
probed, _ = node1.execute("sudo ip link add link lo name probe type vlan id 9 && echo yes", quiet=True)
networks = (
    ["ptp", "sts"] if probed == "yes\n" else ["sts"]
)  # not every kernel that carries the double knows tags
for network in networks:
    stdout, _ = node1.execute(
        f"ping -c 2 -i 0.2 {node2.get_interface(network_name=network).get_ip_addr()}", quiet=True
    )
    assert " 0% packet loss" in stdout, stdout

node1.execute("echo kept > ~/mark", quiet=True)
node1.os_reboot()
slice.wait_ssh(progress=False)
stdout, _ = node1.execute("cat ~/mark; ip -4 -o addr show | grep -c 10.77", quiet=True)
assert stdout == "kept\n0\n", stdout
node1.config()
stdout, _ = node1.execute(
    f"ping -c 2 -i 0.2 {node2.get_interface(network_name='sts').get_ip_addr()}", quiet=True
)
assert " 0% packet loss" in stdout, stdout
node1.pin_cpu(component_name="nic")
node1.numa_tune()
slice.delete()
