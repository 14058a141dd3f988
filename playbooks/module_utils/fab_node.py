# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
"""A node as its tools and files show it, and what a role remembers of how it was.

Python 3.6 and the standard library only: it runs under the Python that Ansible uses on the node.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

OWN_FOLDERS = ("/usr/local/sbin", "/usr/local/bin")
"""What was built here goes before what the distribution brought; sudo of Rocky leaves them out."""
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")


class RefusedError(Exception):
    """The node cannot do what was asked; the message is for the user."""


class Said(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        """What it said on standard error, in one line."""
        return "; ".join(self._lines()) or "no reason given"

    @property
    def last_error(self) -> str:
        """The last line on standard error that says something."""
        return "".join(self._lines()[-1:])

    def _lines(self) -> List[str]:
        return [line.strip() for line in self.err.splitlines() if line.strip()]


class Node:
    """The node that a module runs on.

    ``run_command`` is that of ``AnsibleModule``; ``root`` is the folder below which the node's files are.
    """

    def __init__(self, run_command: Callable[..., Tuple[int, str, str]], root: Path = Path("/")) -> None:
        self._run_command = run_command
        self._root = root

    def path(self, name: str) -> Path:
        """A file of the node, by its path from the root."""
        return self._root / name.lstrip("/")

    def text(self, name: str) -> Optional[str]:
        """What a file holds; None where it cannot be read."""
        try:
            return self.path(name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None

    def run(self, *argv: str, stdin: Optional[str] = None) -> Said:
        """What a command says, in English; status 127 where there is no such command.

        Ordinary users of Debian have no system folders on their PATH: they are looked into last.
        """
        path = os.pathsep.join((*OWN_FOLDERS, os.environ.get("PATH", ""), *SYSTEM_FOLDERS))
        try:
            return Said(
                *self._run_command(
                    list(argv),
                    data=stdin,
                    environ_update={"LC_ALL": "C", "PATH": path},
                    handle_exceptions=False,
                )
            )
        except OSError as error:
            return Said(127, "", f"{argv[0]} could not be run: {error.strerror}")

    def require(self, *argv: str, stdin: Optional[str] = None) -> str:
        """What a command says that must end well; RefusedError when it does not."""
        said = self.run(*argv, stdin=stdin)
        if said.status != 0:
            msg = "{} ended with {}: {}".format(" ".join(argv), said.status, said.reason)
            raise RefusedError(msg)
        return said.out

    def require_json(self, *argv: str) -> List[Dict[str, Any]]:
        """The records that a command of iproute2 tells as JSON; none where it prints nothing."""
        told = self.require(*argv)
        try:
            records = json.loads(told) if told.strip() else []
        except ValueError:
            msg = "{} does not answer in JSON: iproute2 4.18 or later is needed".format(" ".join(argv))
            raise RefusedError(msg) from None
        # Some releases end a list with an empty record.
        return [record for record in records if record]


def answer(module: Any, ensure: Callable[..., Dict[str, Any]]) -> None:  # noqa: ANN401 - an AnsibleModule
    """Have ``ensure`` do what the module was asked, and tell Ansible what came of it."""
    try:
        module.exit_json(**ensure(Node(module.run_command), module.params, check_mode=module.check_mode))
    except RefusedError as refusal:
        module.fail_json(msg=str(refusal))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")


class Record:
    """What a node had before a role changed it: a JSON file. What is not remembered cannot be given back."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> Dict[str, Any]:
        """What was kept; nothing where there is no file."""
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            msg = f"{self._file} is damaged ({error}): what was before is not known; remove the file to go on"
            raise RefusedError(msg) from error
        return dict(kept)

    def write(self, kept: Dict[str, Any]) -> None:
        """Keep this; with nothing to keep there is no file."""
        if not kept:
            self.remove()
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._file, json.dumps(kept, indent=1, sort_keys=True) + "\n")

    def remove(self) -> None:
        try:
            self._file.unlink()
        except FileNotFoundError:
            return


def write_whole(file: Path, text: str) -> None:
    """Write a file that is never seen half written, readable by all."""
    handle, name = tempfile.mkstemp(dir=str(file.parent), prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink()
        raise


def version_lines(node: Node, commands: Sequence[str]) -> Dict[str, Optional[str]]:
    """Command → the first line that it says of its version; None where it is not there or does not work."""
    return {command: _version_line(node, command) for command in commands}


_VERSION_WORDS = {"ss": "-V", "tc": "-V", "ip": "-V", "ping": "-V", "bridge": "-V"}


def _version_line(node: Node, command: str) -> Optional[str]:
    said = node.run(command, _VERSION_WORDS.get(command, "--version"))
    lines = [line.strip() for line in (said.out or said.err).splitlines() if line.strip()]
    return lines[0] if said.status == 0 and lines else None
