"""Equal seeds give equal bytes, whatever else the machine does."""

import os
import shutil
import subprocess
import sys

import pytest
from guest.cells import experiment, fabbbr, run

pytestmark = [pytest.mark.guest, pytest.mark.xdist_group("guest-2")]

TEXT = experiment(
    "same",
    path="rate: 10 Mbit/s, rtt: 20 ms, loss: 0.5 %",
    flows="{cca: bbr1, duration: 3 s}, {cca: cubic, duration: 3 s}, {cca: cubic, size: 200 kB, streams: 2}",
)
SPIN = "while True: pass"


def raw_files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.glob("cells/*/raw/*"))}


def parquet_files(ran):
    assert not ran.set.runs.empty
    return tables_in(ran.folder.path)


def tables_in(run):
    tables = run / "tables"
    return {file.relative_to(tables): file.read_bytes() for file in sorted(tables.rglob("*.parquet"))}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The run that all others are held against."""
    ran = run(tmp_path_factory.mktemp("first"), TEXT, seed=7)
    assert ran.wrong() == {}
    return ran


def test_the_same_seed_gives_the_same_raw_files_and_no_file_names_the_host(first, tmp_path):
    again = run(tmp_path, TEXT, seed=7)
    assert raw_files(again.folder.path) == raw_files(first.folder.path)
    told = {
        first.json(f"flow-0.{side}.json")["start"]["system_info"].split()[1] for side in ("client", "server")
    }
    assert told == {"(none)"}, "iperf3 writes down the name of the machine: the guest's, which has none"


def test_the_same_seed_gives_the_same_manifest_but_for_wall_time(first, tmp_path):
    again = run(tmp_path, TEXT, seed=7)
    told = [ran.cell().manifest.model_dump(exclude={"wall_s"}) for ran in (first, again)]
    assert told[0] == told[1]


def test_raw_files_are_the_same_on_a_loaded_machine_and_on_another_cpu(first, tmp_path):
    every = os.sched_getaffinity(0)
    first_cpu = min(every)
    others = sorted(set(range(os.cpu_count() or 1)) - {first_cpu})
    file = tmp_path / "same.yaml"
    file.write_text(TEXT, encoding="utf-8")
    cpu = others[0] if others else first_cpu
    load = [subprocess.Popen((sys.executable, "-c", SPIN)) for _ in range(2)]
    try:
        os.sched_setaffinity(0, {cpu})
        done = fabbbr("run", file, "--seed", "7", "--out", tmp_path / "run", "--no-report")
    finally:
        os.sched_setaffinity(0, every)
        for process in load:
            process.kill()
            process.wait()
    assert done.returncode == 0, done.stderr
    assert raw_files(tmp_path / "run") == raw_files(first.folder.path)


def test_the_same_raw_files_give_the_same_tables_byte_for_byte(first, tmp_path):
    shutil.copytree(first.folder.path, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "tables", ignore_errors=True)
    before = parquet_files(first)
    assert len(before) >= 5
    done = fabbbr("claims", tmp_path / "run", "--json", PYTHONHASHSEED="3")
    assert done.returncode == 0, done.stderr
    assert tables_in(tmp_path / "run") == before


def test_another_seed_loses_other_packets(first, tmp_path):
    other = run(tmp_path, TEXT, seed=8)
    assert other.wrong() == {}
    same = {
        name
        for name, text in raw_files(other.folder.path).items()
        if raw_files(first.folder.path)[name] == text
    }
    assert {name.rsplit("/", 1)[1] for name in same} <= {
        "readback.json",
        "counters.before.json",
        "preflight.json",
        "console.log",
    }
    assert not other.set.flows["received_bytes"].equals(first.set.flows["received_bytes"])


def test_repetitions_of_one_run_differ_from_one_another(tmp_path):
    text = experiment(
        "twice", path="rate: 10 Mbit/s, rtt: 20 ms, loss: 2 %", flows="{cca: cubic, duration: 2 s}"
    )
    ran = run(tmp_path, text, repeat=2)
    assert ran.wrong() == {}
    assert ran.set.runs["goodput_bps"].nunique() == 2
