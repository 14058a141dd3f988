"""The guest's root: what its agent runs, and nothing else, out of the distribution's packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from fabbbr.backends.guest.image.archive import write_archive
from fabbbr.backends.guest.image.packages import Package, unpack
from fabbbr.errors import KernelBuildError

_HERE = Path(__file__).parent
INIT = _HERE / "init.py"
WAKEUPS = _HERE.parent / "iperf3_wakeups.c"
INGREDIENTS = (INIT, WAKEUPS, *(_HERE / name for name in ("archive.py", "packages.py", "root.py")))
"""Whatever of ours decides the root's bytes."""
WAKEUPS_LIBRARY = "/usr/lib/fabbbr/iperf3_wakeups.so"

_PATIENT_IPERF3 = (3, 22)
"""From here on it waits for its end without asking again and again; 3.18 and 3.20 were seen not to."""
_PROGRAMS = ("cat", "ethtool", "grep", "ip", "iperf3", "mnexec", "ping", "sh", "ss", "sysctl", "tc")
_INTERPRETER = "#!/usr/bin/python3 -ESs\n"
_LOADER = "usr/lib64/ld-linux-x86-64.so.2"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADED_LATER = (f"{_LIBRARIES}/libgcc_s.so.1",)
"""Libraries that are not named by who uses them: this one ends threads."""
_DATA = ("usr/lib/tc", "usr/lib/python3/dist-packages/mininet", "usr/lib/python3/dist-packages/packaging")
"""Folders taken whole; the first has netem's tables of distributions."""
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
_EMPTY = ("dev", "proc", "root", "run", "sys", "tmp", "var")
_FILES = {
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "hosts: files\n",
    "etc/passwd": "root:x:0:0:root:/root:/usr/bin/python3\n",
}
_NOT_OF_PYTHON = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|sqlite3|dbm|curses|venv|unittest|site-packages"
    r"|config-.*|__pycache__|lib-dynload/(_tkinter|_sqlite3|_curses|_dbm|_gdbm|_ssl|readline|nis).*)(/|$)"
)
_COMPILE = """\
import compileall, pathlib, py_compile, sys
stage = sys.argv[1]
for folder in sys.argv[2:]:
    compileall.compile_dir(stage + folder, maxlevels=99, quiet=2, force=True, legacy=True, stripdir=stage,
        prependdir='/', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""
_VERSIONS = {
    "iperf3": ("--version",), "ss": ("-V",), "tc": ("-V",), "ethtool": ("--version",), "ping": ("-V",),
    "mininet": ("-c", "import mininet.net; print('mininet', mininet.net.VERSION)"), "python": ("--version",),
}  # fmt: skip


class Root:
    """The root while it is made, below ``work``."""

    def __init__(self, packages: Iterable[Package], work: Path) -> None:
        self._packages = tuple(packages)
        self._tree, self._stage = work / "tree", work / "stage"
        unpack(self._packages, self._tree)

    def lay_out(self) -> None:
        """Copy what the guest needs; raise KernelBuildError naming what the packages lack."""
        for name in _EMPTY:
            (self._stage / name).mkdir(parents=True)
        for name, content in _FILES.items():
            self._written(name, content)
        for name, target in _LINKS.items():
            (self._stage / name).symlink_to(target)
        programs = [self._take(self._program(name)) for name in _PROGRAMS]
        programs += self._lay_out_python()
        for folder in _DATA:
            for file in self._files_below(folder):
                if "/examples/" not in file:
                    self._take(file)
        self._compile_wakeups()
        self._take(_LOADER)
        for library in {*self._libraries_of(programs), *_LOADED_LATER}:
            self._take(library)
        (self._stage / "init").write_text(_INTERPRETER + INIT.read_text(encoding="utf-8"), encoding="utf-8")
        (self._stage / "init").chmod(0o755)
        self._compile_modules()

    def versions(self) -> dict[str, str]:
        """Tool → first line of what it says of its version."""
        return {tool: self._version(tool, words) for tool, words in _VERSIONS.items()}

    def write(self, to: Path) -> None:
        """The archive."""
        with to.open("wb") as file:
            write_archive(self._stage, file)

    def contributors(self) -> list[Package]:
        """The packages that a file of the root comes from."""
        laid_out = {str(path.relative_to(self._stage)) for path in self._stage.rglob("*") if path.is_file()}
        # Byte code has the place of its source.
        laid_out |= {file[:-1] for file in laid_out if file.endswith(".pyc")}
        return [package for package in self._packages if package.files() & laid_out]

    def copy_licences(self, to: Path) -> None:
        """The copyright file of every package that the root comes from."""
        to.mkdir()
        for package in self.contributors():
            shutil.copyfile(
                self._tree / "usr/share/doc" / package.name / "copyright", to / f"{package.name}.txt"
            )

    def _written(self, name: str, content: str) -> None:
        file = self._stage / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="ascii")

    def _program(self, name: str) -> str:
        for folder in ("usr/bin", "usr/sbin"):
            file = self._tree / folder / name
            if file.exists():
                return f"{folder}/{name}"
        message = f"the packages have no program {name}: the distribution's packages are not as expected"
        raise KernelBuildError(message)

    def _python(self) -> str:
        (found,) = (file.name for file in (self._tree / "usr/bin").glob("python3.[0-9]*"))
        return found

    def _lay_out_python(self) -> list[str]:
        """The interpreter, and its standard library without tests and windows; return the machine code."""
        python = self._python()
        taken = [self._take(f"usr/bin/{python}")]
        (self._stage / "usr/bin/python3").symlink_to(python)
        library = f"usr/lib/{python}"
        for file in self._files_below(library):
            if _NOT_OF_PYTHON.match(file.removeprefix(f"{library}/")) is None:
                self._take(file)
                taken += [file] if file.endswith(".so") else []
        return taken

    def _files_below(self, folder: str) -> Iterator[str]:
        for path in sorted((self._tree / folder).rglob("*")):
            if path.is_file():
                yield str(path.relative_to(self._tree))

    def _take(self, name: str) -> str:
        """Copy one file; what a link leads to takes its place."""
        to = self._stage / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._tree / name, to)
        to.chmod(0o755 if os.access(self._tree / name, os.X_OK) else 0o644)
        return name

    def _libraries_of(self, programs: Iterable[str]) -> list[str]:
        """Names of all shared libraries that the loader would take for them."""
        found: set[str] = set()
        for program in programs:
            listing = self._said("--list", str(self._tree / program))
            if "not found" in listing:
                missing = [line.strip() for line in listing.splitlines() if "not found" in line]
                message = f"{program} lacks a library: {'; '.join(missing)}"
                raise KernelBuildError(message)
            found |= set(re.findall(rf"=> \S*?/({_LIBRARIES}/\S+) \(", listing))
        return sorted(found)

    def _said(self, *words: str, root: Path | None = None) -> str:
        """What a program of the tree prints, or of another ``root``, by its own loader and libraries."""
        own = root or self._tree
        argv = (str(own / _LOADER), "--inhibit-cache", "--library-path", str(own / _LIBRARIES), *words)
        done = subprocess.run(
            argv,
            env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0 and words[0] != "--list":
            message = f"{words[0]} of the guest's root does not run here: {done.stderr.strip()[-300:]}"
            raise KernelBuildError(message)
        return done.stdout + done.stderr

    def _version(self, tool: str, words: tuple[str, ...]) -> str:
        program = f"usr/bin/{self._python()}" if tool in ("python", "mininet") else self._program(tool)
        said = self._said(str(self._stage / program), *words, root=self._stage)
        return said.splitlines()[0].strip()

    def _iperf3(self) -> tuple[int, ...]:
        """The numbers of its version."""
        (version,) = (package.version for package in self._packages if package.name == "iperf3")
        return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))

    def _compile_wakeups(self) -> None:
        library = self._stage / WAKEUPS_LIBRARY.lstrip("/")
        library.parent.mkdir(parents=True, exist_ok=True)
        argv = (
            "gcc",
            "-O2",
            "-s",
            "-shared",
            "-fPIC",
            "-Wl,--build-id=none",
            *(("-DSELECT_SPINS",) if self._iperf3() < _PATIENT_IPERF3 else ()),
            "-o",
            str(library),
            WAKEUPS.name,
        )
        done = subprocess.run(argv, cwd=WAKEUPS.parent, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = f"{WAKEUPS.name} does not compile: {done.stderr.strip()[-300:]}; install libc6-dev"
            raise KernelBuildError(message)

    def _compile_modules(self) -> None:
        """Python's byte code in the place of its source: a cell starts Python, and never compiles."""
        folders = (f"/usr/lib/{self._python()}", "/usr/lib/python3/dist-packages")
        python = str(self._tree / "usr/bin" / self._python())
        self._said(python, "-S", "-E", "-s", "-B", "-c", _COMPILE, str(self._stage), *folders)
        for folder in folders:
            for source in (self._stage / folder.lstrip("/")).rglob("*.py"):
                source.unlink()
