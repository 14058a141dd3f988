"""FABNetv4 between two sites: addresses and routes by fablib, then iperf3."""

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

slice = fablib.new_slice(name="FABNet")
for name, site in (("one", "TACC"), ("two", "UTAH"), ("three", "UTAH")):
    node = slice.add_node(name=name, site=site, image="default_rocky_9")
    node.add_fabnet()
slice.submit()

slice = fablib.get_slice("FABNet")
slice.list_networks()
address = {
    node.get_name(): node.get_interface(network_name=f"FABNET_IPv4_{node.get_site()}").get_ip_addr()
    for node in slice.get_nodes()
}
one, two = slice.get_node("one"), slice.get_node("two")
for other in ("two", "three"):
    stdout, _ = one.execute(f"ping -c 2 -i 0.2 {address[other]}", quiet=True)
    assert " 0% packet loss" in stdout, stdout
assert "ttl=62" in stdout, "two routers lie between the sites"
two.execute("iperf3 -s -D -1", quiet=True)
stdout, stderr = one.execute(f"iperf3 -c {address['two']} -t 1", quiet=True)
assert "receiver" in stdout, (stdout, stderr)
slice.delete()
