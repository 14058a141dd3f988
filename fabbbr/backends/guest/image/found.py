"""The guest image: a kernel and its root, known by one digest, and where it is on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from fabbbr.backends.guest.image.root import INGREDIENTS
from fabbbr.backends.guest.kernel.build import GuestKernel, kernels_folder, recipe_hash, version_key
from fabbbr.errors import EnvironmentUnfitError
from fabbbr.files import sha256_of

DESCRIPTION = "image.json"
ROOT = "root.cpio"
LICENCES = "licences"
WHEEL = "fabbbr_guest"
"""The Python package that brings an image ready made."""


@dataclass(frozen=True, kw_only=True)
class GuestImage:
    """An image, and what it was made from."""

    sha256: str
    """Of the digests of kernel and root: what decides a cell beside its job, its seed and the agent."""
    recipe: str
    kernel: GuestKernel
    root_sha256: str
    tools: dict[str, str]
    """Tool → version line."""
    packages: dict[str, str]
    """Binary package → version, of those that a file of the root comes from."""
    sources: list[str]
    """Their source packages, each with its version; the kernel's is in ``kernel``."""
    compiler: str
    unread: str = ""
    """What was said of package lists that could not be read; its packages may be older than elsewhere."""
    root_folder: str | None = None
    """Where its root is; None: beside its kernel."""

    @property
    def folder(self) -> Path:
        """Where it is."""
        return Path(self.root_folder or self.kernel.folder)

    @property
    def root(self) -> Path:
        """The archive that becomes the guest's root."""
        return self.folder / ROOT

    def with_kernel(self, kernel: GuestKernel) -> GuestImage:
        """The same root under another kernel."""
        sha256 = image_sha256(kernel.kernel_sha256, self.root_sha256)
        return replace(self, sha256=sha256, kernel=kernel, root_folder=str(self.folder))


_DESCRIBED = TypeAdapter(GuestImage)


def images_folder() -> Path:
    """Where images are kept: ``fabbbr/images`` below the user's cache folder."""
    return kernels_folder().parent / "images"


def image_recipe() -> str:
    """Digest of all of ours that decides an image: the kernel's recipe, and the root's."""
    digest = hashlib.sha256(recipe_hash().encode())
    for file in INGREDIENTS:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def image_sha256(kernel_sha256: str, root_sha256: str) -> str:
    """The one digest of an image."""
    return hashlib.sha256(f"{kernel_sha256}\n{root_sha256}\n".encode()).hexdigest()


def described(image: GuestImage) -> str:
    """What is written beside an image."""
    return json.dumps(asdict(image), indent=1)


def found_image() -> GuestImage | None:
    """The image that today's recipe makes: of the installed wheel, or else the newest in the cache."""
    usable = (image for image in _candidates() if image.recipe == image_recipe())
    return next(usable, None)


def foreign_wheel() -> GuestImage | None:
    """The image of an installed wheel that was made for another fabbbr."""
    installed = _in_wheel()
    return installed if installed is not None and installed.recipe != image_recipe() else None


def require_unaltered(image: GuestImage) -> None:
    """Raise EnvironmentUnfitError unless kernel and root are, byte for byte, those that were built."""
    parts = (image.kernel.binary, image.kernel.kernel_sha256), (image.root, image.root_sha256)
    for file, built in parts:
        anew = f"remove {file.parent} and build it anew: fabbbr guest build"
        if image.kernel.name is not None and file == image.kernel.binary:
            anew = f"build it anew: fabbbr kernel build --name {image.kernel.name} --source …"
        try:
            found = sha256_of(file)
        except OSError as error:
            message = f"the guest image's {file}: {error.strerror}; {anew}"
            raise EnvironmentUnfitError(message) from None
        if found != built:
            message = (
                f"the guest image's {file} is not the one that was built (sha256 {found[:16]}…, not "
                f"{built[:16]}…); {anew}"
            )
            raise EnvironmentUnfitError(message)


def _candidates() -> Iterator[GuestImage]:
    installed = _in_wheel()
    if installed is not None:
        yield installed
    cached = [_read(file) for file in images_folder().glob(f"*/{DESCRIPTION}")]
    kept = [image for image in cached if image is not None]
    yield from sorted(kept, key=lambda image: version_key(image.kernel.release), reverse=True)


def _in_wheel() -> GuestImage | None:
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return None
    return _read(Path(spec.submodule_search_locations[0]) / DESCRIPTION)


def _read(file: Path) -> GuestImage | None:
    """None for what is damaged, or not whole."""
    try:
        image = _DESCRIBED.validate_json(file.read_bytes())
    except (OSError, ValueError):
        return None
    # An image that was copied names the place that it was copied from.
    here = replace(image, kernel=replace(image.kernel, folder=str(file.parent)))
    return here if here.kernel.binary.exists() and here.root.exists() else None
