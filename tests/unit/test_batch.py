"""Many flows by one program at either end, on loopback."""

import contextlib
import json
import resource
import signal
import socket
import time

import pytest
from agent_ends import LIMIT_S, await_listening, end, free_port, free_ports, told

from fabbbr.agent import batch, batched
from fabbbr_analysis.parse.transfer import parse_transfer

CLOCK_STEP_S = 1e-6
SOURCES = ("cell c, batch-0.client.json", "cell c, batch-0.server.json")


def task(index, size, *, start_s=0.0, deadline_s=60.0, streams=1, port=None, cport=None):
    return {
        "index": index,
        "port": port or free_port(),
        "cport": cport or free_port(),
        "parallel": streams,
        "bytes": size,
        "start_ns": round(start_s * 1e9),
        "deadline_ns": round(deadline_s * 1e9),
    }


def sending(flows, epoch_s):
    words = batched.words({"flows": flows}, epoch_s)
    return end("batch", "send", *words, "--address", "127.0.0.1", "--congestion", "cubic")


def receiving(flows):
    return end("batch", "receive", *batched.words({"flows": flows}))


@contextlib.contextmanager
def both(flows, *, sent_only=()):
    """Sender and receiver, and the instant from which their starts count."""
    with receiving(flows) as receiver:
        for flow in flows:
            await_listening(flow["port"])
        epoch_s = time.monotonic() + 0.1
        with sending([*sent_only, *flows], epoch_s) as sender:
            yield sender, receiver, epoch_s


def documents(process):
    flows = json.loads(told(process))["flows"]
    return {int(index): document for index, document in flows.items()}


def test_each_flow_delivers_its_bytes_and_starts_at_its_instant():
    sizes = {7: (1, 1, 0.0), 8: (1_000_003, 3, 0.05), 9: (400_000, 1, 0.05), 12: (2, 2, 0.3)}
    flows = [task(i, size, streams=n, start_s=start) for i, (size, n, start) in sizes.items()]
    with both(flows) as (sender, receiver, epoch_s):
        sent, received = documents(sender), documents(receiver)
        assert (sender.returncode, receiver.returncode) == (0, 0)
    assert set(sent) == set(received) == set(sizes)
    for index, (size, streams, start_s) in sizes.items():
        texts = (json.dumps(each[index]).encode() for each in (sent, received))
        ends = parse_transfer(*texts, sources=SOURCES)
        assert (ends.sender.outcome, ends.receiver.outcome) == ("completed", "completed")
        assert ends.sender.sent.bytes == ends.receiver.received.bytes == size
        assert ends.receiver.streams == streams
        assert sent[index]["started_s"] > epoch_s + start_s - CLOCK_STEP_S
        assert not sent[index]["timed_out"]


def test_a_flow_that_nobody_receives_fails_alone():
    with both([task(1, 10)], sent_only=[task(0, 10)]) as (sender, receiver, _):
        sent, received = documents(sender), documents(receiver)
    assert [sent[index]["error"] for index in (0, 1)] == ["Connection refused", None]
    assert received[1]["error"] is None


def test_a_flow_whose_time_is_up_says_so_and_the_others_go_on():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        late = task(0, 1 << 30, deadline_s=0.3, port=deaf.getsockname()[1])
        with both([task(1, 10, start_s=0.6)], sent_only=[late]) as (sender, _, epoch_s):
            sent = documents(sender)
    assert (sent[0]["error"], sent[0]["timed_out"]) == ("its time was up", True)
    assert sent[0]["ended_s"] > epoch_s + 0.3 - CLOCK_STEP_S
    assert 0 < sent[0]["streams"][0]["bytes"] < 1 << 30
    assert sent[1]["started_s"] > epoch_s + 0.6 - CLOCK_STEP_S
    assert sent[1]["error"] is None


def stopped_while_it_waits(process):
    process.send_signal(signal.SIGTERM)
    flows = documents(process)
    assert process.returncode == 1
    assert {document["error"] for document in flows.values()} == {"interrupted by signal 15"}
    assert all(document["ended_s"] is not None for document in flows.values())
    return flows


def test_a_sender_that_is_stopped_tells_what_it_has():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        flows = [task(0, 1 << 30, port=deaf.getsockname()[1]), task(1, 5, start_s=50)]
        with sending(flows, time.monotonic()) as sender, deaf.accept()[0] as connection:
            connection.recv(1)
            told = stopped_while_it_waits(sender)
    assert told[0]["streams"][0]["bytes"] > 0
    assert (told[1]["started_s"], told[1]["streams"]) == (None, [])


def test_a_receiver_that_is_stopped_tells_what_it_has():
    one = task(0, 5)
    with receiving([one]) as receiver:
        await_listening(one["port"])
        told = stopped_while_it_waits(receiver)
    assert told[0]["streams"] == []


def test_a_signal_that_comes_as_it_begins_to_wait_stops_it_too():
    """Between the look at what comes next and the wait for it: there is nothing else that would end that."""
    waits = batch.Batch(batch._options(["receive", "--flows", json.dumps([task(0, 5)])]))
    asleep = waits._alarm.set

    def stopped_first(instant):
        signal.raise_signal(signal.SIGTERM)
        asleep(instant)

    waits._alarm.set = stopped_first
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGTERM, waits.stop)
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for ever"))
    signal.alarm(LIMIT_S // 10)
    try:
        with pytest.raises(batch.StoppedError, match="signal 15"):
            waits.run()
    finally:
        signal.alarm(0)
        signal.set_wakeup_fd(-1)
        for each, handler in before.items():
            signal.signal(each, handler)
    waits.end("over")


def test_more_flows_than_a_process_may_have_files_open():
    ports = free_ports(200)
    flows = [task(i, 100 + i, port=ports[2 * i], cport=ports[2 * i + 1]) for i in range(100)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    try:
        with both(flows) as (sender, receiver, _):
            sent, received = documents(sender), documents(receiver)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {each["error"] for each in (*sent.values(), *received.values())} == {None}


BATCH = {"index": 3, "flows": [task(5, 100, port=1), task(6, 100, port=2)]}
SHARED = {
    "started_s": -0.05, "epoch_s": 100.0, "ended_s": 9.0, "timed_out": False, "client_exit": 0,
    "server_exit": 0,
}  # fmt: skip


def document(**changes):
    return {"error": None, "timed_out": False, "started_s": 101.0, "ended_s": 102.5} | changes


def left(folder, side, flows):
    (folder / f"batch-3.{side}.json").write_text(json.dumps({"batch": 1, "flows": flows}))


def test_the_timeline_notes_of_each_flow_what_it_would_of_its_own_programs(tmp_path):
    left(tmp_path, "client", {"5": document(), "6": document(error="x", timed_out=True, started_s=None)})
    left(tmp_path, "server", {"5": document(), "6": document(error="y")})
    one, other = batched.records(BATCH, SHARED, str(tmp_path))
    assert one == SHARED | {"flow": 5, "batch": 3, "started_s": 1.0, "ended_s": 2.5}
    assert other == SHARED | {
        "flow": 6, "batch": 3, "ended_s": 2.5, "timed_out": True, "client_exit": 1, "server_exit": 1,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", '{"batch": 1, "fl'])
def test_what_a_program_that_left_nothing_ended_with_stands_for_all_its_flows(tmp_path, text):
    left(tmp_path, "server", {"5": document(), "6": document()})
    (tmp_path / "batch-3.client.json").write_text(text)
    records = list(batched.records(BATCH, SHARED | {"client_exit": -9}, str(tmp_path)))
    assert [record["client_exit"] for record in records] == [-9, -9]
    assert [record["started_s"] for record in records] == [-0.05, -0.05]


def test_a_receiver_on_another_machine_notes_how_it_ended_alone(tmp_path):
    left(tmp_path, "server", {"5": document(), "6": document(error="y")})
    records = list(batched.records(BATCH, {"epoch_s": 100.0, "server_exit": 0}, str(tmp_path)))
    assert records == [
        {"flow": 5, "batch": 3, "epoch_s": 100.0, "server_exit": 0},
        {"flow": 6, "batch": 3, "epoch_s": 100.0, "server_exit": 1},
    ]
