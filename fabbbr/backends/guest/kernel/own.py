"""Kernels of the user's own, beside that of the guest image: each is built once, and known by its name."""

from __future__ import annotations

import shutil
from pathlib import Path

from fabbbr.backends.guest.kernel import build
from fabbbr.backends.guest.kernel.build import DESCRIPTION, GuestKernel, Keep, Origin, Progress
from fabbbr.backends.guest.kernel.given import Given, is_series, lay_out
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.foreign import listed
from fabbbr.kernels import OF_IMAGE


def own_kernels_folder() -> Path:
    """Where they are kept: ``fabbbr/own-kernels`` below the user's cache folder, a folder for each name."""
    return build.kernels_folder().parent / "own-kernels"


def own_kernels() -> dict[str, GuestKernel]:
    """Name → kernel, the oldest release first; whatever recipe made it."""
    described = sorted(own_kernels_folder().glob(f"*/{DESCRIPTION}"))
    found = (build.read_kernel(file) for file in described)
    kernels = {kernel.name: kernel for kernel in found if kernel is not None and kernel.name is not None}
    return dict(sorted(kernels.items(), key=lambda item: build.version_key(item[1].release)))


def build_own(
    given: Given, progress: Progress, *, jobs: int | None = None, keep: Keep | None = None
) -> GuestKernel:
    """Build what is given and keep it under its name, in place of one that had that name before.

    ``keep`` is as in :func:`fabbbr.backends.guest.kernel.build.build_kernel`. Raises KernelBuildError with
    the remedy.
    """
    build.require_tools()
    name = given.called
    root = own_kernels_folder()
    root.mkdir(parents=True, exist_ok=True)
    workshop = build.workshop_for(root)
    build.require_space(workshop)
    at_once = jobs or build.compilers_at_once()
    with (
        build.only_one_builder(root, progress),
        build.folder_in(workshop) as work,
        build.folder_in(root) as shelf,
    ):
        progress(f"laying out {given.source}", 0.0)
        source = lay_out(given, work)
        origin = Origin(package=source.package, version=source.version, patches=source.patches, name=name)
        kernel = build.compile_kernel(source.tree, shelf / "kernel", origin, progress, jobs=at_once)
        kernel = build.put(kernel, root / name)
        if keep is not None:
            keep(source.tree, kernel, progress, jobs=at_once)
        progress("done", 1.0)
        return kernel


def kernel_named(name: str, of_image: GuestKernel) -> GuestKernel:
    """The kernel that an experiment calls ``name``; raise EnvironmentUnfitError with the remedy.

    ``default`` is the image's; so is the series that it belongs to, unless that was built too.
    """
    if name == OF_IMAGE:
        return of_image
    kernels = own_kernels()
    found = kernels.get(name)
    if found is None and of_image.release.startswith(f"{name}."):
        return of_image
    source = name if found is None else found.package
    how = (
        f"fabbbr kernel build --source {source}" if is_series(source) else "fabbbr kernel build --source TREE"
    )
    if found is None:
        there = listed([OF_IMAGE, *kernels])
        named = "" if is_series(source) else f" --name {name}"
        message = f"no kernel {name} is built (there are: {there}); build it once, as with: {how}{named}"
        raise EnvironmentUnfitError(message)
    if found.recipe != build.recipe_hash():
        message = f"kernel {name} was built by another fabbbr; build it anew, as with: {how} --name {name}"
        raise EnvironmentUnfitError(message)
    return found


def lacking(name: str, of_image: GuestKernel) -> Given | None:
    """What builds the kernel that an experiment calls ``name``, of the distribution's source.

    None where that kernel is there, and where only the user knows what it was made of.
    """
    found = own_kernels().get(name)
    is_there = (
        found.recipe == build.recipe_hash() if found is not None else of_image.release.startswith(f"{name}.")
    )
    source = name if found is None else found.package
    if name == OF_IMAGE or is_there or not is_series(source) or (found is not None and found.patches):
        return None
    return Given(source=source, name=name)


def remove(name: str) -> None:
    """Remove a kernel; raise EnvironmentUnfitError when there is none of that name."""
    kernels = own_kernels()
    if name not in kernels:
        message = f"no kernel {name} is built (there are: {listed(kernels) or 'none'})"
        raise EnvironmentUnfitError(message)
    shutil.rmtree(Path(kernels[name].folder))
