"""Hosts whose TCP is tuned: the kernel takes what a file may ask, and flows do what it makes them do."""

import re

import pytest
from guest.cells import experiment, in_guest, run

from fabbbr.spec.sysctls import Sysctls

pytestmark = pytest.mark.guest

MSS, FRAME = 1448, 1514


def ends_of(name):
    """The least and the largest value that a file may ask for."""
    schema = Sysctls.model_json_schema()["properties"][name]["anyOf"][0]
    if schema["type"] == "string":
        return "4096 4096 4096", "4096 131072 2147483647"
    return ("0", "1") if schema["type"] == "boolean" else (str(schema["minimum"]), str(schema["maximum"]))


def test_the_guests_kernel_takes_all_that_a_file_may_ask_in_a_host_of_its_own(tmp_path):
    asked = [(name, value) for name in Sysctls.model_fields for value in ends_of(name)]
    lines = [f"echo {value} > {name} && echo {name} $(cat {name})" for name, value in asked]
    inside = f"cd /proc/sys/net/ipv4; {'; '.join(lines)}"
    done = in_guest("unshare", "-n", "sh", "-c", inside, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"{name} {value}" for name, value in asked], done.stderr


def test_a_receive_buffer_bounds_the_window_and_with_it_the_goodput(tmp_path):
    """A window of data a round trip; Linux counts what packets take in memory: more than they carry."""
    tuned = run(
        tmp_path,
        experiment(
            "windows",
            path="rate: 100 Mbit/s, rtt: 100 ms",
            flows="{cca: cubic, duration: 8 s}",
            more="sysctl: {tcp_rmem: $rmem}\nvary: {rmem: [250 kB, 500 kB, 64 MB]}\nwarm_up: 4 s",
        ),
    )
    assert tuned.wrong() == {}
    goodput = tuned.set.runs.set_index("axis_rmem")["goodput_steady_bps"]
    for rmem, memory_bytes in (("250 kB", 250e3), ("500 kB", 500e3)):
        window_bytes = goodput[rmem] * 0.1 / 8
        assert tuned.set.runs.set_index("axis_rmem")["queue_drops"][rmem] == 0
        assert memory_bytes / 2 < window_bytes < memory_bytes * MSS / FRAME
        (said,) = re.findall(r"measured': '\S+ ([\d.]+) of ([\d.]+) s", str(certified(tuned, rmem)))
        assert float(said[0]) > 0.9 * float(said[1])
    assert goodput["500 kB"] == pytest.approx(2 * goodput["250 kB"], rel=0.03)
    assert goodput["64 MB"] > 0.95 * 100e6 * MSS / FRAME


def certified(ran, rmem):
    checks = ran.cell(f"rmem={rmem.replace(' ', '')},r1").manifest.certificate.checks
    (check,) = (check for check in checks if check.name == "time limited by the receive window")
    return check.model_dump()


def counted(ran, name, cell_id):
    """Of the sender, by its kernel."""
    netstat = ran.json("counters.after.json", cell_id)["h1"]["netstat"]
    names, values = (line.split() for line in netstat.splitlines() if line.startswith("TcpExt:"))
    return int(values[names.index(name)])


def test_a_sender_whose_buffer_is_small_waits_for_it(tmp_path):
    tuned = run(
        tmp_path,
        experiment(
            "sender",
            path="rate: 50 Mbit/s, rtt: 50 ms",
            flows="{cca: reno, duration: 4 s}, {cca: reno, size: 200 kB, start: 1 s}",
            more="sysctl: {tcp_wmem: 4096 16384 65536}",
        ),
    )
    assert tuned.wrong() == {}
    assert (tuned.set.flows["goodput_bps"] < 65_536 * 8 / 0.05).all()


def test_without_selective_acknowledgements_senders_repair_without_them(tmp_path):
    tuned = run(
        tmp_path,
        experiment(
            "sack",
            path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 0.5 BDP",
            flows="{cca: cubic, duration: 3 s}",
            more="sysctl: {tcp_sack: $sack}\nvary: {sack: [true, false]}",
        ),
    )
    assert tuned.wrong() == {}
    for sack in ("true", "false"):
        recovered = {
            kind: counted(tuned, f"TCP{kind}Recovery", f"sack={sack},r1") for kind in ("Sack", "Reno")
        }
        assert (recovered["Sack"] > 0, recovered["Reno"] > 0) == (sack == "true", sack == "false")
