"""One machine that carries out a part: what is put there, asked, told and fetched, in the machine's name."""

from __future__ import annotations

import contextlib
import io
import posixpath
import shutil
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fabbbr.backends.agent import AGENT, ALONE, Outcome, outcome_of
from fabbbr.backends.base import HEARTBEAT, JOB, OUTCOME
from fabbbr.backends.channel import Channel, ChannelError
from fabbbr.backends.clocks import measure
from fabbbr.backends.talk import HungUpError, Talk, talk_with
from fabbbr.backends.tools import NODE_PYTHON
from fabbbr.errors import BackendError
from fabbbr.files import sha256_of
from fabbbr.job.records import Job
from fabbbr.testbed import ClockOffset

ARCHIVE = "agent.zip"
_LOG = "agent.log"
_ALIVE = "alive"
_SILENT_S = 30.0
"""An agent on a machine that answers, and which has not said so long that it lives, is gone."""
_LOST_S = 240.0
"""A connection that is lost may come back: the agent waits five minutes for its coordinator."""
_AGAIN_S, _LONGEST_AGAIN_S = 1.0, 16.0
"""A connection that is lost is tried less and less often: bastions lock out who knocks every second."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What was built on the machine, like a newer iperf3, goes before what its distribution brought."""
_DETACHED = 'cd "$0" && exec setsid --fork "$@" >>agent.log 2>&1 </dev/null'
_PUT = 'mkdir -p "${0%/*}" && cat >"$0.new" && mv "$0.new" "$0"'
_ANSWER_S = 60.0
_T = TypeVar("_T")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Machine:
    """Carries out ``part`` in a folder of its own, called ``task``."""

    def __init__(self, name: str, channel: Channel, part: Job, task: str) -> None:
        self.name = name
        self.part = part
        self._channel = channel
        self._folder = posixpath.join(channel.folder, task)
        self._talk: Talk | None = None
        self._standing = ExitStack()
        """The talk, and what ends it."""
        self._heard = (time.monotonic(), "")
        self._reached = time.monotonic()
        self._again_s = self._not_before = 0.0
        """Since the connection was lost: the pause before the next try, and when that is."""
        self.lost_s = _LOST_S
        """How long to try again when the connection is lost; commands are such that twice is as once."""
        self.started = False
        """Whether its agent may run: all that it needs is there."""
        self._away_s = 0.0
        """How long it was out of reach, but for now."""
        self._lost_at: float | None = None
        """When the connection was found lost, until it is back."""
        self.clock_s: float | None = None
        """How far its flows are, on the experiment's clock."""

    def start(self, patience_s: float) -> None:
        """Have the part carried out; the agent ends by itself when it was told nothing for ``patience_s``."""
        self.put_agent()
        self.tell("coordinator", "0")
        self._put(JOB, self.part.model_dump_json().encode() + b"\n")
        self.started = True
        self.wake(patience_s)

    def wake(self, patience_s: float) -> None:
        """Start the agent: it carries out the part that was put there, or says why it does not.

        One that was killed is said to have been; one that runs or is done stays as it is.
        """
        agent = (*ALONE, *self._python("agent.part"), self._folder, f"{patience_s:g}")
        self._run(("sh", "-c", _DETACHED, self._folder, *agent))
        self._heard = (time.monotonic(), "")

    def put_agent(self) -> None:
        """Put the agent into the part's folder, as one file."""
        self._put(ARCHIVE, archive())

    def tell(self, name: str, line: str) -> None:
        """Make a file of one line in the part's folder."""
        self._again(lambda: self._ask({"write": name, "line": line}))

    def beat(self, line: str) -> None:
        """Say that whoever coordinates lives; once, for the next time is soon."""
        self._ask({"write": "coordinator", "line": line})

    def told(self, *names: str) -> dict[str, str]:
        """Those of these files of one line that are there, while all is well.

        Raise BackendError when the agent has failed or is silent. While the connection is lost nothing is
        known, for four minutes.
        """
        now = time.monotonic()
        if now < self._not_before and now - self._reached <= self.lost_s:
            return {}
        try:
            lines = self._said(*names, _ALIVE, HEARTBEAT, OUTCOME)
        except ChannelError:
            if now - self._reached > self.lost_s:
                raise
            self._lost()
            self._again_s = _longer(self._again_s)
            self._not_before = now + self._again_s
            # What it said meanwhile is not known to have been nothing.
            self._heard = (now, self._heard[1])
            return {}
        self._back()
        self._reached = time.monotonic()
        self._again_s = 0.0
        if OUTCOME in lines:
            self._outcome(lines)
        else:
            self._require_alive(lines.get(_ALIVE, ""))
        if HEARTBEAT in lines:
            self.clock_s = float(lines[HEARTBEAT])
        return {name: lines[name] for name in names if name in lines}

    def away_s(self) -> float:
        """How long it was out of reach so far."""
        return self._away_s + (0.0 if self._lost_at is None else time.monotonic() - self._lost_at)

    def _lost(self) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()

    def _back(self) -> None:
        self._away_s, self._lost_at = self.away_s(), None

    def ended(self) -> bool:
        """Whether the agent has ended, well or not."""
        return OUTCOME in self._lines(OUTCOME)

    def clock(self) -> ClockOffset:
        """Measure its clock against ours."""
        return self._again(lambda: measure(lambda: float(self._ask({"clock": True})["clock_s"])))

    def fetch(self, to: Path) -> float:
        """Get the raw files and what the agent printed; return the seconds that the part took there."""
        outcome = self._outcome(self._lines(OUTCOME))
        self._again(lambda: self._unpack(to))
        self.fetch_log(to)
        wrong = [
            name
            for name, digest in outcome.files.items()
            if not (to / name).is_file() or sha256_of(to / name) != digest
        ]
        if wrong:
            message = f"machine {self.name}: {', '.join(wrong)} came over damaged; run the cell again"
            raise BackendError(message)
        return outcome.elapsed_s

    def fetch_log(self, to: Path) -> None:
        """Get what the agent printed, as a console."""
        (to / "console.log").write_bytes(self._run(("cat", posixpath.join(self._folder, _LOG))))

    def forget(self) -> None:
        """Remove what was put there and what came of it."""
        self._run(("rm", "-rf", self._folder))

    def _unpack(self, to: Path) -> None:
        pack = ("tar", "-C", posixpath.join(self._folder, "raw"), "-czf", "-", ".")
        with self._named(), self._channel.conversation(pack) as process:
            assert process.stdout is not None
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|gz") as archive:
                    _extract(archive, to)
            except (tarfile.TarError, EOFError, zlib.error) as error:
                message = f"the raw files did not all come over: {error}; run the cell again"
                raise ChannelError(message) from error

    def _outcome(self, lines: dict[str, str]) -> Outcome:
        with self._named():
            return outcome_of(lines.get(OUTCOME, "").encode())

    def _require_alive(self, beat: str) -> None:
        now = time.monotonic()
        if beat not in ("", self._heard[1]):
            self._heard = (now, beat)
        if now - self._heard[0] > _SILENT_S:
            message = (
                f"machine {self.name}: its agent has been silent for {_SILENT_S:g} s; see "
                f"{posixpath.join(self._folder, _LOG)} there, and whether the machine runs"
            )
            raise BackendError(message)

    def _lines(self, *names: str) -> dict[str, str]:
        return self._again(lambda: self._said(*names))

    def _said(self, *names: str) -> dict[str, str]:
        """File → its line. One question for all of them: each may be a way around the world."""
        lines: dict[str, str] = self._ask({"read": names})["lines"]
        return lines

    def hang_up(self) -> None:
        """End what was started there to be asked; the next question would start it again."""
        self._talk = None
        self._standing.close()

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What :mod:`fabbbr.agent.folder` answers, which is begun again where it has ended meanwhile."""
        with self._named():
            if self._talk is not None:
                with contextlib.suppress(HungUpError):
                    return self._answer(self._talk, question)
                self.hang_up()
            program = (*self._python("agent.folder"), self._folder)
            self._talk = self._standing.enter_context(talk_with(self._channel, program))
            return self._answer(self._talk, question)

    @staticmethod
    def _answer(talk: Talk, question: Mapping[str, Any]) -> dict[str, Any]:
        answer = talk.ask(question, _ANSWER_S)
        if "error" in answer:
            raise BackendError(answer["error"])
        return answer

    def _put(self, name: str, content: bytes) -> None:
        self._run(("sh", "-c", _PUT, posixpath.join(self._folder, name)), stdin=content)

    def _python(self, module: str) -> tuple[str, ...]:
        return python(posixpath.join(self._folder, ARCHIVE), module)

    def _run(self, argv: Sequence[str], *, stdin: bytes = b"") -> bytes:
        return self._again(lambda: self._run_once(argv, stdin))

    def _run_once(self, argv: Sequence[str], stdin: bytes) -> bytes:
        with self._named():
            done = self._channel.run(argv, stdin=stdin)
            if done.returncode != 0:
                message = f"{argv[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}"
                raise BackendError(message)
        return done.stdout

    def _again(self, action: Callable[[], _T]) -> _T:
        """Do it; while the connection is lost, again."""
        until = time.monotonic() + self.lost_s
        pause_s = 0.0
        while True:
            try:
                done = action()
            except ChannelError:
                self._lost()
                if time.monotonic() > until:
                    raise
            else:
                self._back()
                return done
            pause_s = _longer(pause_s)
            time.sleep(pause_s)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors in this block name the machine."""
        try:
            yield
        except BackendError as error:
            message = f"machine {self.name}: {error}"
            raise type(error)(message) from error


def _longer(pause_s: float) -> float:
    return min(max(_AGAIN_S, 2 * pause_s), _LONGEST_AGAIN_S)


def python(archive: str, module: str) -> tuple[str, ...]:
    """The words that run a module of the agent, which is in the file ``archive`` there."""
    settings = (f"PATH={_PATH}", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={archive}")
    return ("env", "-i", *settings, "HOME=/root", NODE_PYTHON, "-m", module)


@contextmanager
def agent_on(channel: Channel, folder: str) -> Iterator[str]:
    """The agent as one file of that machine, in a folder of this name, for as long as the block lasts."""
    path = posixpath.join(channel.folder, folder, ARCHIVE)
    put = channel.run(("sh", "-c", _PUT, path), stdin=archive())
    if put.returncode != 0:
        message = f"the agent cannot be put to {path}: {put.stderr.decode(errors='replace').strip()}"
        raise BackendError(message)
    try:
        yield path
    finally:
        with contextlib.suppress(BackendError):
            channel.run(("rm", "-rf", posixpath.dirname(path)))


def archive() -> bytes:
    """The agent as one file that Python runs; the same bytes whenever it is made."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for file in sorted(AGENT.glob("*.py")):
            packed.writestr(zipfile.ZipInfo(f"agent/{file.name}", _EPOCH), file.read_bytes())
    return content.getvalue()


def _extract(archive: tarfile.TarFile, to: Path) -> None:
    for member in archive:
        packed = archive.extractfile(member)
        if packed is not None:
            # By its bare name: whatever an archive says, it writes nowhere else.
            with (to / posixpath.basename(member.name)).open("wb") as file:
                shutil.copyfileobj(packed, file)
