"""Equal seeds give equal bytes, whatever else the machine does."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from guest.cells import WALL_LIMIT_S, command, experiment, fabbbr, run

from fabbbr.backends.guest import cpus, machine
from fabbbr.backends.guest.cpus import Cpus

pytestmark = pytest.mark.guest

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


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
def test_raw_files_are_the_same_though_the_guest_goes_from_cpu_to_cpu(first, tmp_path, monkeypatch):
    """As if it had to wait all the time, and all other CPUs idled."""
    went, pin = [], cpus._pin

    def seen(process, cpu):
        went.append((process, cpu))
        pin(process, cpu)

    monkeypatch.setattr(machine, "_LOOK_AT_CPU_S", 0.02)
    monkeypatch.setattr(cpus, "_WAITS", -99)
    monkeypatch.setattr(cpus, "_pin", seen)
    monkeypatch.setattr(Cpus, "idle_s", lambda _: dict.fromkeys(os.sched_getaffinity(0), time.monotonic()))
    again = run(tmp_path, TEXT, seed=7)
    assert raw_files(again.folder.path) == raw_files(first.folder.path)
    # The kernel of the guest, and its processes.
    assert len({cpu for _, cpu in went}) > 1
    assert len({process for process, _ in went}) > 3


SURROUNDINGS = {
    "a long TMPDIR": {"TMPDIR": "{folder}/" + "long/" * 30},
    "a TMPDIR with a quote and a blank": {"TMPDIR": "{folder}/it's here"},
    "another HOME": {"HOME": "{folder}", "XDG_CACHE_HOME": "{cache}"},
    "another language": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"},
    "another time zone": {"TZ": "Pacific/Chatham"},
    "another seed of Python's hashes": {"PYTHONHASHSEED": "99"},
    "no program on PATH": {"PATH": "{folder}/nothing"},
    "a library to preload": {"LD_LIBRARY_PATH": "/usr/lib", "LD_BIND_NOW": "1"},
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_raw_files_are_the_same_in_other_surroundings(first, tmp_path, name):
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    given = {key: text.format(folder=tmp_path, cache=cache) for key, text in SURROUNDINGS[name].items()}
    if "TMPDIR" in given:
        Path(given["TMPDIR"]).mkdir(parents=True)
    (tmp_path / "same.yaml").write_text(TEXT, encoding="utf-8")
    done = fabbbr(
        "run", tmp_path / "same.yaml", "--seed", "7", "--out", tmp_path / "run", "--no-report", **given
    )
    assert done.returncode == 0, done.stderr
    assert raw_files(tmp_path / "run") == raw_files(first.folder.path)


@pytest.mark.parametrize("shell", ["umask 077", "umask 000", "ulimit -n 300", "exec 7<. 8<. 9</dev/null"])
def test_raw_files_are_the_same_under_another_umask_and_with_other_open_files(first, tmp_path, shell):
    (tmp_path / "same.yaml").write_text(TEXT, encoding="utf-8")
    words = command("run", tmp_path / "same.yaml", "--seed", "7", "--out", tmp_path / "run", "--no-report")
    words["args"] = ["sh", "-c", f'{shell}; exec "$@"', "sh", *words["args"]]
    done = subprocess.run(**words, capture_output=True, timeout=WALL_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert raw_files(tmp_path / "run") == raw_files(first.folder.path)


def test_raw_files_are_the_same_however_many_cells_run_at_a_time(tmp_path):
    (tmp_path / "same.yaml").write_text(TEXT, encoding="utf-8")
    for jobs in ("1", "3"):
        done = fabbbr(
            "run",
            tmp_path / "same.yaml",
            "--repeat",
            "3",
            "--jobs",
            jobs,
            "--out",
            tmp_path / jobs,
            "--no-report",
        )
        assert done.returncode == 0, done.stderr
    assert raw_files(tmp_path / "1") == raw_files(tmp_path / "3")


def test_the_manifest_names_the_image_and_nothing_of_the_host(first, image):
    manifest = first.cell().manifest
    (machine,) = manifest.provenance.testbed.machines.values()
    assert machine.image_sha256 == image.sha256
    assert machine.tools == image.tools
    assert str(Path.home()) not in manifest.model_dump_json()


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
        # Clocks are exact: what is asked for at an instant comes then, and a flow's end is looked for.
        "flows.json",
        "sockets.h1.times",
        "sockets.h2.times",
        "queues.s1.times",
        "queues.w1.times",
    }
    assert not other.set.flows["received_bytes"].equals(first.set.flows["received_bytes"])


def test_repetitions_of_one_run_differ_from_one_another(tmp_path):
    text = experiment(
        "twice", path="rate: 10 Mbit/s, rtt: 20 ms, loss: 2 %", flows="{cca: cubic, duration: 2 s}"
    )
    ran = run(tmp_path, text, repeat=2)
    assert ran.wrong() == {}
    assert ran.set.runs["goodput_bps"].nunique() == 2
