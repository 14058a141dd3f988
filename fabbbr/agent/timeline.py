"""Runs the flows, steps and samplers of a job, each at its instant."""

import fcntl
import heapq
import os
import signal
import subprocess
import time
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

from .forked import Forked, program
from .gate import Gate
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
        self._servers: Dict[int, Process] = {}
        self._clients: Dict[int, Process] = {}
        self._waiting: Set[int] = set()
        """Flows with an end on this machine that is not over."""
        self._sending: Set[int] = set()
        """Flows whose client is here, over or not."""
        self._all_sent_s: Optional[float] = None
        """Since when every client on every machine is over."""
        self._records: Dict[int, Dict[str, Any]] = {}
        self._steps: List[Dict[str, Any]] = []
        self._pinging: Dict[int, Process] = {}

    def run(self, gates: Sequence[Gate]) -> Tuple[List[Dict[str, Any]], List[Dict[str, Any]]]:
        """Return what happened to each flow and when each step was carried out.

        The traces of ``gates`` begin with the flows' time.
        """
        received = [flow for flow in self._job["flows"] if self._namespaces.has(flow["server_node"])]
        for flow in received:
            self._start_server(flow)
        for flow in received:
            self._await_listening(flow)
        sampling = samplers(self._namespaces, self._job, self._folder)
        sampling += [gate.sampler(self._folder) for gate in gates]
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
        return [self._records[index] for index in sorted(self._records)], self._steps

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
        for flow in self._job["flows"]:
            self._waiting.add(flow["index"])
            if not self._namespaces.has(flow["client_node"]):
                self._records[flow["index"]] = {
                    "flow": flow["index"],
                    "epoch_s": self._epoch,
                    "server_exit": None,
                }
                continue
            self._sending.add(flow["index"])
            self._at(flow["start_ns"] * 1e-9, partial(self._start_client, flow))
            self._at(flow["deadline_ns"] * 1e-9, partial(self._interrupt, flow))
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

        first_end = min((flow["expected_end_ns"] for flow in self._job["flows"]), default=0)
        self._at(first_end * 1e-9, reap)

    def _at(self, instant_s: float, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (instant_s, self._serial, action))

    def _loop(self) -> None:
        while self._waiting or not self._barrier.met("over"):
            instant, _, action = heapq.heappop(self._events)
            sleep_until(self._epoch + instant)
            action()

    def _start_server(self, flow: Dict[str, Any]) -> None:
        self._servers[flow["index"]] = self._start(flow, "server", flow["server_node"], flow["server_argv"])

    def _start_client(self, flow: Dict[str, Any]) -> None:
        index = flow["index"]
        self._records[index] = {
            "flow": index,
            "started_s": time.monotonic() - self._epoch,
            "epoch_s": self._epoch,
            "ended_s": None,
            "timed_out": False,
            "client_exit": None,
            "server_exit": None,
        }
        self._clients[index] = self._start(flow, "client", flow["client_node"], flow["client_argv"])

    def _start(self, flow: Dict[str, Any], side: str, node: str, argv: List[str]) -> Process:
        environment = self._iperf3_environment if argv[0] == "iperf3" else None
        return self._start_program("flow-%d.%s" % (flow["index"], side), node, argv, environment)

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

    def _await_listening(self, flow: Dict[str, Any]) -> None:
        """A client that comes before its server listens is refused: look until it does."""
        port = ":%04X " % int(flow["server_argv"][flow["server_argv"].index("--port") + 1])
        for _ in range(_LISTEN_TRIES):
            with self._namespaces.inside(flow["server_node"]), open("/proc/thread-self/net/tcp") as table:
                if any(port in line.split(": ", 1)[-1][:14] and " 0A " in line for line in table):
                    return
            if self._servers[flow["index"]].poll() is not None:
                break
            time.sleep(_POLL_S)
        raise OSError("the receiver of flow %d does not listen" % flow["index"])

    def _interrupt(self, flow: Dict[str, Any]) -> None:
        """Ask a client that overstays to print what it has; end it for good a little later."""
        index = flow["index"]
        if index in self._waiting and self._clients[index].poll() is None:
            self._records[index]["timed_out"] = True
            self._clients[index].send_signal(signal.SIGTERM)
            now = time.monotonic() - self._epoch
            self._at(now + _STOP_GRACE_S, self._clients[index].kill)

    def _reap(self) -> None:
        now = time.monotonic() - self._epoch
        for index in list(self._waiting):
            sent_s = self._client_ended_s(index, now)
            if sent_s is None:
                continue
            server = self._servers.get(index)
            if server is not None:
                if server.poll() is None and now < sent_s + _EXCHANGE_S:
                    continue
                self._records[index]["server_exit"] = _ended(server)
            self._waiting.discard(index)
        if self._all_sent_s is None and not self._sending & self._waiting and self._barrier.met("over"):
            self._all_sent_s = now

    def _client_ended_s(self, index: int, now: float) -> Optional[float]:
        """None while it runs; one on another machine is over when all are, for only then are we told."""
        if index not in self._sending:
            return self._all_sent_s
        client, record = self._clients.get(index), self._records.get(index)
        if client is None or record is None or client.poll() is None:
            return None
        if record["ended_s"] is None:
            record["ended_s"] = now
            record["client_exit"] = client.returncode
        ended_s: float = record["ended_s"]
        return ended_s

    def _carry_out(self, step: Dict[str, Any]) -> None:
        for command in step["commands"]:
            answer = self._namespaces.run(command)
            if answer["exit"] != 0:
                raise OSError("step at %.3f s: %s" % (step["at_ns"] * 1e-9, answer["stderr"].strip()))
        self._steps.append({"at_s": step["at_ns"] * 1e-9, "done_s": time.monotonic() - self._epoch})


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
