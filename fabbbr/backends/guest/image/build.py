"""Builds the guest image once and keeps it in the user's cache."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fabbbr.backends.guest.image.found import (
    DESCRIPTION,
    LICENCES,
    ROOT,
    GuestImage,
    described,
    found_image,
    image_recipe,
    image_sha256,
    images_folder,
)
from fabbbr.backends.guest.image.packages import Package, fetch
from fabbbr.backends.guest.image.root import Root
from fabbbr.backends.guest.kernel.build import (
    GuestKernel,
    Progress,
    build_kernel,
    compiler,
    folder_in,
    only_one_builder,
    require_tools,
    workshop_for,
)
from fabbbr.backends.guest.module.tree import keep
from fabbbr.files import sha256_of, write_atomically

_OF_KERNEL = ("linux", "config", "System.map")


def build_image(progress: Progress, *, jobs: int | None = None) -> GuestImage:
    """Build kernel and root at a time; return the cached image, or raise KernelBuildError with the remedy."""
    require_tools()
    folder = images_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with only_one_builder(folder, progress):
        existing = found_image()
        if existing is not None:
            return existing
        with folder_in(folder) as shelf:
            return _build_in(shelf / "image", folder, progress, jobs)


def _build_in(staged: Path, folder: Path, progress: Progress, jobs: int | None) -> GuestImage:
    staged.mkdir()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="root") as pool:
        made = pool.submit(build_root, staged)
        kernel = build_kernel(progress, jobs=jobs, keep=keep)
        progress("root file system", 0.99)
        packages, tools, unread = made.result()
    for name in _OF_KERNEL:
        shutil.copy2(Path(kernel.folder) / name, staged / name)
    image = _described_image(kernel, packages, tools, staged, unread)
    write_atomically(staged / DESCRIPTION, described(image))
    final = folder / f"{kernel.release}-{image.recipe}"
    shutil.rmtree(final, ignore_errors=True)
    staged.rename(final)
    progress("done", 1.0)
    return replace(image, kernel=replace(kernel, folder=str(final)))


def build_root(staged: Path) -> tuple[list[Package], dict[str, str], str]:
    """Put the root's archive and licences into ``staged``.

    Return its packages, its tools' versions and what was said of package lists that could not be read.
    """
    # Blanks and colons part the paths that the loader is given, and prints.
    with folder_in(workshop_for(staged.parent)) as work:
        packages, unread = fetch(work)
        root = Root(packages, work)
        root.lay_out()
        root.write(staged / ROOT)
        root.copy_licences(staged / LICENCES)
        return root.contributors(), root.versions(), unread


def _described_image(
    kernel: GuestKernel, packages: list[Package], tools: dict[str, str], staged: Path, unread: str
) -> GuestImage:
    root_sha256 = sha256_of(staged / ROOT)
    return GuestImage(
        sha256=image_sha256(kernel.kernel_sha256, root_sha256),
        recipe=image_recipe(),
        kernel=kernel,
        root_sha256=root_sha256,
        tools=tools,
        packages={package.name: package.version for package in packages},
        sources=sorted({package.source for package in packages}),
        compiler=compiler(),
        unread=unread,
    )
