"""Programs of the agent that start as a fork of it, and not as a Python of their own.

Starting Python takes a guest a tenth of a second and 8 MB, and there may be hundreds of flows, each with a program at either
end. A fork has all that is needed already.
"""

import contextlib
import importlib
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable, List, Optional

_POLL_S = 0.01


def program(name: str) -> Callable[[List[str]], int]:
    """The agent's program of that name, which is imported now: its forks share it, and most jobs have none."""
    main: Callable[[List[str]], int] = importlib.import_module("." + name, __package__).main
    return main


class Forked:
    """A fork that runs ``program`` with ``argv``; to whoever started it what ``subprocess.Popen`` is."""

    def __init__(
        self, program: Callable[[List[str]], int], argv: List[str], stdout: Any, stderr: Any
    ) -> None:
        self.returncode: Optional[int] = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be(program, argv, stdout.fileno(), stderr.fileno())

    def poll(self) -> Optional[int]:
        """Its exit status, a signal as a negative number; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Its exit status; raise TimeoutError when it has none in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise TimeoutError("process %d has not ended within %s s" % (self.pid, timeout))
            time.sleep(_POLL_S)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To one that has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _be(program: Callable[[List[str]], int], argv: List[str], stdout: int, stderr: int) -> None:
    """Be that program, and nothing of the agent: its files are closed, for whoever reads a pipe waits for its end."""
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):  # that of the listing itself
                    os.close(int(name))
        status = program(argv)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - nothing may come back into the agent
        traceback.print_exc()
    finally:
        os._exit(status)
