"""Runs the flows, steps and samplers of a job, each at its instant."""

import fcntl
import heapq
import os
import signal
import subprocess
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from . import batched
from .forked import Forked, program
from .gate import Gate, gate_samplers
from .instants import sleep_until
from .namespace import Namespaces
from .sampling import samplers

_LISTEN_TRIES = 3000
_POLL_S = 0.01
_STOP_GRACE_S = 5.0
_LEAD_S = 0.1
_EXCHANGE_S = 15.0
_RNDRESEEDCRNG = 0x5207


FORKED = "forked"
"""First word of what is to be a fork of the agent; the second names the program."""
Process = Union[Forked, "subprocess.Popen[bytes]"]


class Barrier:
    """Where the parts of a job wait for one another. Of a job in one part: nobody is waited for."""

    def wait(self, stage: str) -> None:
        """Return when every part is ready for ``stage``."""

    def start(self, stage: str) -> float:  # noqa: ARG002
        """Return at the instant, on this machine's monotonic clock, at which every part begins ``stage``."""
        return time.monotonic()

    def met(self, stage: str) -> bool:  # noqa: ARG002
        """Say that this part is ready for ``stage``; whether every part is."""
        return True


class Timeline:
    """One experiment: ``run`` returns when every flow is over.

    ``at_zero`` is called when all is ready and nothing has been sent yet.
    """

    def __init__(
        self,
        namespaces: Namespaces,
        job: Dict[str, Any],
        folder: str,
        heartbeat: Callable[[float], None],
        barrier: Barrier,
        at_zero: Callable[[], None],
    ) -> None:
        self._namespaces = namespaces
        self._job = job
        self._folder = folder
        self._heartbeat = heartbeat
        self._barrier = barrier
        self._at_zero = at_zero
        self._iperf3_environment = dict(os.environ, **job.get("environment", {}))
        self._events: List[Tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._epoch = 0.0
        self._tasks: Dict[str, Dict[str, Any]] = {"flow-%d" % flow["index"]: flow for flow in job["flows"]}
        """By the name of their raw files: what has two ends. A batch is one."""
        self._tasks.update((batched.name(batch), batch) for batch in job["batches"])
        self._servers: Dict[str, Process] = {}
        self._clients: Dict[str, Process] = {}
        self._waiting: Dict[str, None] = {}
        """Tasks with an end on this machine that is not over, in the order of the job."""
        self._sending: Set[str] = set()
        """Tasks whose client is here, over or not."""
        self._all_sent_s: Optional[float] = None
        """Since when every client on every machine is over."""
        self._records: Dict[str, Dict[str, Any]] = {}
        self._steps: List[Dict[str, Any]] = []
        self._pinging: Dict[int, Process] = {}

    def run(self, gates: Sequence[Gate]) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
        """Return what happened to each flow and when each step was carried out.

        The traces of ``gates`` begin with the flows' time.
        """
        received = [name for name, task in self._tasks.items() if self._namespaces.has(task["server_node"])]
        for name in received:
            self._start_server(name)
        for name in received:
            self._await_listening(name)
        sampling = samplers(self._namespaces, self._job, self._folder)
        sampling += gate_samplers(gates, self._folder)
        self._epoch = self._begin() + _LEAD_S
        for gate in gates:
            gate.begin(self._epoch)
        self._schedule(sampling)
        try:
            self._loop()
            self._end_pings()
        finally:
            for process in self._started():
                if process.poll() is None:
                    process.kill()
                    process.wait()
        for sampler in sampling:
            sampler.finish()
        return sorted(self._told(), key=lambda record: int(record["flow"])), self._steps

    def _told(self) -> Iterator[Dict[str, Any]]:
        """What happened to each flow."""
        for name, record in self._records.items():
            task = self._tasks[name]
            if "flows" in task:
                yield from batched.records(task, record, self._folder)
            else:
                yield {"flow": task["index"], **record}

    def _started(self) -> List[Process]:
        return [
            process
            for of_kind in (self._clients, self._servers, self._pinging)
            for process in of_kind.values()
        ]

    def _begin(self) -> float:
        """The instant from which the flows' time counts, waited for."""
        if self._job.get("flows_at_ns") is not None:
            self._forget()
        self._at_zero()
        # From here on whoever watches may take a clock that stands for a process that spins.
        self._heartbeat(0.0)
        return self._barrier.start("flows")

    def _forget(self) -> None:
        """Wait for the instant of the job's choice, and draw all randomness anew.

        What was drawn before, and how long it took, then shows in nothing that comes after.
        """
        sleep_until(self._job["flows_at_ns"] * 1e-9)
        with open("/dev/urandom", "rb") as generator:
            fcntl.ioctl(generator, _RNDRESEEDCRNG)
        for command in self._job["anew"]:
            answer = self._namespaces.run(command)
            if answer["exit"] != 0:
                raise OSError("%s: %s" % (" ".join(command["argv"]), answer["stderr"].strip()))

    def _schedule(self, samplers: List[Any]) -> None:
        for name, task in self._tasks.items():
            self._waiting[name] = None
            if not self._namespaces.has(task["client_node"]):
                self._records[name] = {"epoch_s": self._epoch, "server_exit": None}
                continue
            self._sending.add(name)
            self._at(task["start_ns"] * 1e-9, partial(self._start_client, name))
            self._at(task["deadline_ns"] * 1e-9, partial(self._interrupt, name))
        self._schedule_others(samplers)

    def _schedule_others(self, samplers: List[Any]) -> None:
        for ping in self._job["pinging"]:
            self._at(ping["start_ns"] * 1e-9, partial(self._start_ping, ping))
        for step in self._job["steps"]:
            self._at(step["at_ns"] * 1e-9, partial(self._carry_out, step))
        period = self._job["sample_period_ns"] * 1e-9

        def sample(number: int) -> None:
            now = time.monotonic() - self._epoch
            for sampler in samplers:
                sampler.sample(now)
            self._at((number + 1) * period, lambda: sample(number + 1))

        self._at(0.0, lambda: sample(0))

        def beat() -> None:
            self._heartbeat(time.monotonic() - self._epoch)
            self._at(time.monotonic() - self._epoch + 1.0, beat)

        self._at(0.0, beat)

        def reap() -> None:
            self._reap()
            self._at(time.monotonic() - self._epoch + _POLL_S, reap)

        first_end = min((task["expected_end_ns"] for task in self._tasks.values()), default=0)
        self._at(first_end * 1e-9, reap)

    def _at(self, instant_s: float, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (instant_s, self._serial, action))

    def _loop(self) -> None:
        while self._waiting or not self._barrier.met("over"):
            instant, _, action = heapq.heappop(self._events)
            sleep_until(self._epoch + instant)
            action()

    def _start_server(self, name: str) -> None:
        task = self._tasks[name]
        argv = task["server_argv"] + batched.words(task)
        self._servers[name] = self._start(name, "server", task["server_node"], argv)

    def _start_client(self, name: str) -> None:
        task = self._tasks[name]
        self._records[name] = {
            "started_s": time.monotonic() - self._epoch,
            "epoch_s": self._epoch,
            "ended_s": None,
            "timed_out": False,
            "client_exit": None,
            "server_exit": None,
        }
        argv = task["client_argv"] + batched.words(task, self._epoch)
        self._clients[name] = self._start(name, "client", task["client_node"], argv)

    def _start(self, name: str, side: str, node: str, argv: List[str]) -> Process:
        environment = self._iperf3_environment if argv[0] == "iperf3" else None
        return self._start_program("%s.%s" % (name, side), node, argv, environment)

    def _start_ping(self, ping: Dict[str, Any]) -> None:
        argv = ping["argv"] + ["--epoch", "%.9f" % self._epoch]
        self._pinging[ping["index"]] = self._start_program("ping-%d" % ping["index"], ping["node"], argv)

    def _end_pings(self) -> None:
        """Have each say what it has; what it asked last may still be answered."""
        for ping in self._job["pinging"]:
            process = self._pinging.get(ping["index"])
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.wait(ping["patience_ns"] * 1e-9 + _STOP_GRACE_S)

    def _start_program(
        self, name: str, node: str, argv: List[str], environment: Optional[Dict[str, str]] = None
    ) -> Process:
        stem = os.path.join(self._folder, name)
        with open(stem + ".json", "wb") as out, open(stem + ".err", "wb") as err:
            if argv[0] == FORKED:
                with self._namespaces.inside(node):
                    return Forked(program(argv[1]), argv[2:], out, err)
            return self._namespaces.start(
                node, argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
            )

    def _await_listening(self, name: str) -> None:
        """A client that comes before its server listens is refused: look until it does, on all ports."""
        task = self._tasks[name]
        ports = set(_ports(task))
        for _ in range(_LISTEN_TRIES):
            with self._namespaces.inside(task["server_node"]), open("/proc/thread-self/net/tcp") as table:
                if ports <= {int(line.split()[1][-4:], 16) for line in table if " 0A " in line}:
                    return
            if self._servers[name].poll() is not None:
                break
            time.sleep(_POLL_S)
        raise OSError("the receiver of %s does not listen" % name)

    def _interrupt(self, name: str) -> None:
        """Ask a client that overstays to print what it has; end it for good a little later."""
        if name in self._waiting and self._clients[name].poll() is None:
            self._records[name]["timed_out"] = True
            self._clients[name].send_signal(signal.SIGTERM)
            now = time.monotonic() - self._epoch
            self._at(now + _STOP_GRACE_S, self._clients[name].kill)

    def _reap(self) -> None:
        now = time.monotonic() - self._epoch
        for name in list(self._waiting):
            sent_s = self._client_ended_s(name, now)
            if sent_s is None:
                continue
            server = self._servers.get(name)
            if server is not None:
                if server.poll() is None and now < sent_s + _EXCHANGE_S:
                    continue
                self._records[name]["server_exit"] = _ended(server)
            del self._waiting[name]
        all_sent = self._sending.isdisjoint(self._waiting)
        if self._all_sent_s is None and all_sent and self._barrier.met("over"):
            self._all_sent_s = now

    def _client_ended_s(self, name: str, now: float) -> Optional[float]:
        """None while it runs; one on another machine is over when all are, for only then are we told."""
        if name not in self._sending:
            return self._all_sent_s
        client, record = self._clients.get(name), self._records.get(name)
        if client is None or record is None or client.poll() is None:
            return None
        if record["ended_s"] is None:
            record["ended_s"] = now
            record["client_exit"] = client.returncode
        ended_s: float = record["ended_s"]
        return ended_s

    def _carry_out(self, step: Dict[str, Any]) -> None:
        before = self._namespaces.answers(step["counted"])
        for command in step["commands"]:
            answer = self._namespaces.run(command)
            if answer["exit"] != 0:
                raise OSError("step at %.3f s: %s" % (step["at_ns"] * 1e-9, answer["stderr"].strip()))
        record = {"at_s": step["at_ns"] * 1e-9, "done_s": time.monotonic() - self._epoch}
        if before:
            record.update(before=before, after=self._namespaces.answers(step["counted"]))
        self._steps.append(record)


def _ports(task: Dict[str, Any]) -> List[int]:
    """On which its server listens."""
    if "flows" in task:
        return batched.ports(task)
    return [int(task["server_argv"][task["server_argv"].index("--port") + 1])]


def _ended(server: Process) -> int:
    """Its exit status; one that still runs is told to stop."""
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(_STOP_GRACE_S)
        except (subprocess.TimeoutExpired, TimeoutError):
            server.kill()
            server.wait()
    assert server.returncode is not None
    return int(server.returncode)
