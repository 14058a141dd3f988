"""Builds a module for the guest's kernel, once for each state of its sources; then it is in the cache."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from fabbbr.backends.complaints import Against, before_building, of_output, prototypes, warnings
from fabbbr.backends.guest.kernel import build as kernel_build
from fabbbr.backends.guest.kernel.build import GuestKernel
from fabbbr.backends.guest.module import native
from fabbbr.backends.guest.module.elf import exports, module_info
from fabbbr.errors import KernelBuildError, ModuleUnfitError
from fabbbr.files import sha256_of, write_atomically
from fabbbr.foreign import listed
from fabbbr.sources import RECIPES, Sources

_DESCRIPTION = "module.json"
_LOG = "failed-build.log"
_LIMIT_S = 300
_REGISTERS = b"tcp_register_congestion_control"
_SYMBOL = re.compile(r"^[0-9a-f]+ \w (\w+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class BuiltModule:
    """A module that is built, and what it was made from."""

    folder: str
    name: str
    """In the kernel, as in ``/sys/module``."""
    source_sha256: str
    sha256: str
    """Of the file that is loaded."""
    compiler: str
    kernel_release: str
    kernel_sha256: str
    parameters: dict[str, str]
    """Name → type, as the module says."""
    warnings: list[str]
    """What it does otherwise than on the kernel that it was written for."""

    @property
    def file(self) -> Path:
        """What is loaded."""
        return Path(self.folder) / f"{self.name}.ko"

    @property
    def debug_file(self) -> Path:
        """The same code with its lines."""
        return Path(self.folder) / f"{self.name}.debug.ko"


_DESCRIBED = TypeAdapter(BuiltModule)


def modules_folder() -> Path:
    """Where they are kept: ``fabbbr/modules`` below the user's cache folder."""
    return kernel_build.kernels_folder().parent / "modules"


def cached_module(sources: Sources, kernel: GuestKernel) -> BuiltModule | None:
    """The module of these sources for this kernel and this compiler, where it is there."""
    folder = _folder(sources, kernel)
    try:
        found = _DESCRIBED.validate_json((folder / _DESCRIPTION).read_bytes())
    except (OSError, ValueError):
        return None
    here = replace(found, folder=str(folder))
    return here if here.file.exists() and sha256_of(here.file) == here.sha256 else None


def build_module(sources: Sources, kernel: GuestKernel, tree: Path) -> BuiltModule:
    """Compile against ``tree``; raise ModuleUnfitError with file, line and remedy where that fails."""
    against = against_kernel(kernel, tree)
    complaint = before_building(sources, against)
    if sources.program is not None:
        complaint = next(native.without_native_form(sources), complaint)
    if complaint is not None:
        raise ModuleUnfitError(str(complaint))
    root = modules_folder()
    root.mkdir(parents=True, exist_ok=True)
    with (
        kernel_build.only_one_builder(root, lambda *_: None),
        kernel_build.folder_in(kernel_build.workshop_for(root)) as work,
        kernel_build.folder_in(root) as shelf,
    ):
        _lay_out(sources, work, tree)
        output = _made(work, tree, sources, against)
        file = _the_one(work, sources)
        built = _staged(file, shelf / "module", sources, kernel, against)
        if "initializer-string" in output:
            raise ModuleUnfitError(str(of_output(output, sources, against)))
        final = _folder(sources, kernel)
        shutil.rmtree(final, ignore_errors=True)
        (shelf / "module").rename(final)
    return built


def against_kernel(kernel: GuestKernel, tree: Path) -> Against:
    """What a module meets in this kernel."""
    header = (tree / "include/net/tcp.h").read_text(encoding="utf-8")
    return Against(
        release=kernel.release,
        prototypes=prototypes(header),
        exported=frozenset(one.name for one in exports(kernel.binary.read_bytes())),
        known=frozenset(_SYMBOL.findall(kernel.symbols.read_text(encoding="ascii"))),
    )


def _folder(sources: Sources, kernel: GuestKernel) -> Path:
    made_of = (
        f"{kernel.kernel_sha256}\n{kernel_build.compiler()}\n{Path(__file__).read_text(encoding='utf-8')}"
    )
    if sources.program is not None:
        made_of += native.headers_digest()
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    return modules_folder() / f"{sources.sha256[:16]}-{key}"


def _lay_out(sources: Sources, work: Path, tree: Path) -> None:
    if sources.program is not None:
        _write(native.probe(work), work)
        _write(native.laid_out(sources, _declared(work, tree, sources), work), work)
        return
    _write(sources.contents, work)
    if not any(recipe in sources.contents for recipe in RECIPES):
        (stem,) = (Path(name).stem for name in sources.contents if name.endswith(".c"))
        (work / "Kbuild").write_text(f"obj-m := {stem}.o\n", encoding="ascii")


def _write(contents: Mapping[str, bytes], work: Path) -> None:
    for name, content in contents.items():
        file = work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _declared(work: Path, tree: Path, sources: Sources) -> str:
    """All that the headers declare which a program is compiled behind, preprocessed."""
    done = _make((f"{native.PROBE}.i",), work, tree, sources)
    if done.returncode != 0:
        message = f"the headers of the guest's kernel do not go through the compiler: {done.stdout.strip()}"
        raise KernelBuildError(message)
    return (work / f"{native.PROBE}.i").read_text(encoding="utf-8", errors="replace")


def _made(work: Path, tree: Path, sources: Sources, against: Against) -> str:
    """What make printed; raise ModuleUnfitError when it failed."""
    done = _make(("modules",), work, tree, sources)
    if done.returncode != 0:
        log = modules_folder() / _LOG
        log.write_text(done.stdout, encoding="utf-8")
        message = f"{of_output(done.stdout, sources, against)} (all that make said: {log})"
        raise ModuleUnfitError(message)
    return done.stdout


def _make(
    targets: tuple[str, ...], work: Path, tree: Path, sources: Sources
) -> subprocess.CompletedProcess[str]:
    # No path of this machine in it: the same sources give the same bytes anywhere.
    maps = " ".join(f"-f{what}-prefix-map={path}/=" for what in ("file", "macro") for path in (work, tree))
    argv = (*kernel_build.MAKE, "-C", str(tree), f"M={work}", f"KCFLAGS=-g -gno-record-gcc-switches {maps}",
            "LDFLAGS_MODULE=--build-id=none", *targets)  # fmt: skip
    try:
        return subprocess.run(
            argv,
            cwd=work,
            # As when make is called in the module's folder: some Makefiles find their headers by it.
            env=kernel_build.environment() | {"PWD": str(work)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        message = f"{sources.place}: make did not end within {_LIMIT_S} s; look at its Makefile"
        raise ModuleUnfitError(message) from None


def _the_one(work: Path, sources: Sources) -> Path:
    """The module that registers a congestion control."""
    found = sorted(work.rglob("*.ko"))
    fit = [file for file in found if _REGISTERS in file.read_bytes()]
    if len(fit) == 1:
        return fit[0]
    if fit:
        names = listed(file.stem for file in fit)
        message = f"{sources.place}: builds {len(fit)} congestion controls ({names}); name the .c file of one"
        raise ModuleUnfitError(message)
    made = listed(file.name for file in found) or "nothing"
    message = (
        f"{sources.place}: builds {made}, and no module that registers a congestion control; say obj-m := "
        "<name>.o in its Kbuild or Makefile"
    )
    raise ModuleUnfitError(message)


def _staged(file: Path, to: Path, sources: Sources, kernel: GuestKernel, against: Against) -> BuiltModule:
    to.mkdir()
    info = module_info(file.read_bytes())
    said = dict(info)
    name = said.get("name", file.stem.replace("-", "_"))
    final = _folder(sources, kernel)
    shutil.copy(file, to / f"{name}.debug.ko")
    stripped = subprocess.run(
        ("strip", "--strip-debug", "-o", str(to / f"{name}.ko"), str(file)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if stripped.returncode != 0:
        message = f"strip failed: {stripped.stderr.strip()}; install binutils"
        raise KernelBuildError(message)
    types = (value.partition(":") for key, value in info if key == "parmtype")
    built = BuiltModule(
        folder=str(final),
        name=name,
        source_sha256=sources.sha256,
        sha256=sha256_of(to / f"{name}.ko"),
        compiler=kernel_build.compiler(),
        kernel_release=kernel.release,
        kernel_sha256=kernel.kernel_sha256,
        parameters={parameter: kind for parameter, _, kind in types},
        warnings=[str(one) for one in warnings(sources, against)],
    )
    write_atomically(to / _DESCRIPTION, json.dumps(asdict(built), indent=1))
    return built
