"""What modules are built against: the headers and make rules of the guest's kernel, kept beside its image.

An entry of the cache by the digest of the kernel. Where the kernel is built here it is left over; else it is
made once, of the same source package, edited and configured in the same way. The image has no part in it.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from fabbbr.backends.guest.kernel import build
from fabbbr.backends.guest.kernel.build import GuestKernel, Progress
from fabbbr.backends.guest.kernel.edits import edit
from fabbbr.backends.guest.kernel.source import newest_source, unpack
from fabbbr.backends.guest.module.elf import symbol_versions
from fabbbr.errors import KernelBuildError
from fabbbr.files import sha256_of, write_atomically
from fabbbr.foreign import listed

EXPECTED_S = 60
"""To fetch, unpack and configure, for people who may have other plans."""
_DESCRIPTION = "tree.json"
_KEPT = (
    "Makefile", ".config", "include", "scripts", "arch/um/include", "arch/um/scripts", "arch/x86/include",
    "arch/x86/um", *(f"arch/um/{name}" for name in ("Makefile", "Makefile-skas", "Makefile-os-Linux")),
    *(f"arch/x86/{name}" for name in ("Makefile", "Makefile.um", "Makefile_32.cpu")),
)  # fmt: skip
_EXAMPLES = "net/ipv4/tcp_*.[ch]"
"""The kernel's own congestion controls: no module needs them, but whoever writes one."""
_LEFT_OUT = shutil.ignore_patterns("*.o", "*.a", "*.cmd", "Kconfig*", "dt-bindings", "dtc", "gdb", "kconfig")
_OF_COMPILER = ("CONFIG_CC_", "CONFIG_GCC_", "CONFIG_AS_", "CONFIG_LD_", "CONFIG_CLANG_", "CONFIG_RUST")


def trees_folder() -> Path:
    """Where they are kept: ``fabbbr/trees`` below the user's cache folder."""
    return build.kernels_folder().parent / "trees"


def cached_tree(kernel: GuestKernel) -> Path | None:
    """The tree of this kernel, where it is there."""
    folder = _folder(kernel)
    return folder if (folder / _DESCRIPTION).exists() else None


def kernel_tree(kernel: GuestKernel, progress: Progress, *, jobs: int | None = None) -> Path:
    """The tree of this kernel, which is made where it is missing; raise KernelBuildError with the remedy."""
    found = cached_tree(kernel)
    if found is not None:
        return found
    build.require_tools()
    root = trees_folder()
    root.mkdir(parents=True, exist_ok=True)
    with build.only_one_builder(root, progress), build.folder_in(build.workshop_for(root)) as work:
        found = cached_tree(kernel)
        return found or _made(kernel, work, progress, jobs or 2)


def _made(kernel: GuestKernel, work: Path, progress: Progress, jobs: int) -> Path:
    started = time.monotonic()
    progress("looking for the kernel's source", 0.0)
    try:
        package = newest_source(work)
    except KernelBuildError as error:
        message = (
            f"modules need the headers of the guest's kernel, of {kernel.package} {kernel.package_version}, "
            f"which this machine's package sources do not offer; copy {_folder(kernel)} from a machine that "
            "has it, or run on Debian or Ubuntu, where a container will do"
        )
        raise KernelBuildError(message) from error
    if (package.name, package.version) != (kernel.package, kernel.package_version):
        message = (
            f"the guest's kernel was made of {kernel.package} {kernel.package_version}, and this machine's "
            f"package sources now offer {package.name} {package.version}: modules need the same headers. "
            f"Remove {kernel.folder} and {build.kernels_folder()}, then: fabbbr guest build"
        )
        raise KernelBuildError(message)
    progress(f"fetching {package.name} {package.version}", 0.02)
    source = unpack(package, work)
    progress("configuring", 0.4)
    edit(source)
    build.configure(source)
    _require_same_options(kernel, source)
    return keep(source, kernel, progress, jobs=jobs, started=started)


def keep(
    source: Path, kernel: GuestKernel, progress: Progress, /, *, jobs: int, started: float | None = None
) -> Path:
    """Put aside of a configured source what modules need; return where."""
    began = time.monotonic() if started is None else started
    progress("headers for modules", 0.99)
    build.step((*build.MAKE, "modules_prepare", f"-j{jobs}"), source)
    root = trees_folder()
    root.mkdir(parents=True, exist_ok=True)
    final = _folder(kernel)
    with build.folder_in(root) as shelf:
        staged = shelf / "tree"
        for name in _KEPT:
            _copy(source / name, staged / name)
        for file in source.glob(_EXAMPLES):
            _copy(file, staged / file.relative_to(source))
        versions = symbol_versions((Path(kernel.folder) / "linux").read_bytes())
        (staged / "Module.symvers").write_text(versions, encoding="ascii")
        described = {
            "kernel_sha256": kernel.kernel_sha256,
            "release": kernel.release,
            "package": kernel.package,
            "package_version": kernel.package_version,
            "made_s": round(time.monotonic() - began, 1),
        }
        write_atomically(staged / _DESCRIPTION, json.dumps(described, indent=1))
        shutil.rmtree(final, ignore_errors=True)
        staged.rename(final)
    return final


def _copy(source: Path, to: Path) -> None:
    """With its times, by which make knows what is up to date."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, to, symlinks=True, ignore=_LEFT_OUT)
    elif source.exists():
        shutil.copy2(source, to)


def _folder(kernel: GuestKernel) -> Path:
    return trees_folder() / f"{kernel.release}-{kernel.kernel_sha256[:16]}"


def _require_same_options(kernel: GuestKernel, source: Path) -> None:
    """Raise KernelBuildError unless the options are the kernel's own, but for what names the compiler."""
    if sha256_of(source / ".config") == kernel.config_sha256:
        return
    ours, its = (_options(path) for path in (source / ".config", Path(kernel.folder) / "config"))
    different = sorted({line.split("=")[0] for line in ours ^ its})
    if different:
        message = (
            f"the compiler here gives the guest's kernel other options ({listed(different, most=5)}) than "
            f"the one it was built with; install that one, or build the image anew: fabbbr guest build"
        )
        raise KernelBuildError(message)


def _options(config: Path) -> frozenset[str]:
    lines = config.read_text(encoding="utf-8").splitlines()
    return frozenset(
        line for line in lines if line.startswith("CONFIG_") and not line.startswith(_OF_COMPILER)
    )
