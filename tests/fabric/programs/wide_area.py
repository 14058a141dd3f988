"""A wide-area layer-2 link, shaped by a token bucket in the middle of it, measured by iperf3."""

import json
from ipaddress import IPv4Network

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

slice = fablib.new_slice(name="WideArea")
client = slice.add_node(name="client", site="DALL", image="default_ubuntu_22")
switch = slice.add_node(name="switch", site="DALL", image="default_ubuntu_22")
server = slice.add_node(name="server", site="SALT", image="default_ubuntu_22")
client_nic = client.add_component(model="NIC_Basic", name="nic").get_interfaces()[0]
left = switch.add_component(model="NIC_Basic", name="left").get_interfaces()[0]
right = switch.add_component(model="NIC_Basic", name="right").get_interfaces()[0]
server_nic = server.add_component(model="NIC_Basic", name="nic").get_interfaces()[0]
near = slice.add_l2network(name="near", interfaces=[client_nic, left])
far = slice.add_l2network(name="far", interfaces=[right, server_nic])
assert (str(near.get_type()), str(far.get_type())) == ("L2Bridge", "L2STS")
for iface, subnet, address in (
    (client_nic, "10.9.1.0/24", "10.9.1.2"),
    (server_nic, "10.9.1.0/24", "10.9.1.3"),
):
    iface.set_mode("config")
    iface.get_network().set_subnet(IPv4Network(subnet))
    iface.set_ip_addr(address)
slice.submit()

slice = fablib.get_slice("WideArea")
client, switch, server = (slice.get_node(name) for name in ("client", "switch", "server"))
devices = [switch.get_interface(network_name=name).get_device_name() for name in ("near", "far")]
commands = [
    "sudo ip link add br0 type bridge",
    *(f"sudo ip link set {device} master br0 up" for device in devices),
    "sudo ip link set br0 up",
    f"sudo tc qdisc add dev {devices[1]} root tbf rate 50mbit burst 100kb limit 250kb",
]
stdout, stderr = switch.execute(" && ".join(commands), quiet=True)
assert stderr == "", stderr
server.execute("iperf3 -s -D -1", quiet=True)
stdout, stderr = client.execute("iperf3 -c 10.9.1.3 -t 3 -J", quiet=True)
rate_bps = json.loads(stdout)["end"]["sum_received"]["bits_per_second"]
print(f"{rate_bps / 1e6:.1f} Mbit/s through a bucket of 50 Mbit/s")
assert rate_bps < 50.5e6, rate_bps
slice.delete()
