"""What a run folder holds and what is wrong with it: for ``fabbbr verify`` and all that reads numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fabbbr.errors import StoreError
from fabbbr.files import LARGEST_RECORD_BYTES, sha256_of_own
from fabbbr.sources import Sources
from fabbbr.store import CELLS, EXPERIMENT, MANIFEST, MODULES, RUN, RunFolder, Stored


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What was found."""

    run_sha256: str
    whole: Mapping[str, str]
    """Id of each whole cell → sha256 of its manifest, in the order of the ids."""
    damaged: Mapping[str, tuple[str, ...]]
    """Name in ``cells/`` → what is wrong with what stands there."""
    around: tuple[str, ...]
    """What is wrong elsewhere."""
    not_run: tuple[str, ...]
    """Planned cells that are not there."""
    without_digest: int
    """Manifests of format 1, ``run.json`` included: an edit of them is not noticed."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, a line each; the name of the cell or file comes first."""
        return (*self.around, *(problem for each in self.damaged.values() for problem in each))

    @property
    def digest(self) -> str | None:
        """The digest of the whole run, to cite it by; None when something is wrong with it.

        It is that of the lines that ``sha256sum run.json cells/*/manifest.json`` prints, and through the
        manifests that of every raw file.
        """
        if self.problems:
            return None
        lines = [f"{self.run_sha256}  {RUN}\n"]
        lines += [f"{sha256}  {CELLS}/{cell_id}/{MANIFEST}\n" for cell_id, sha256 in self.whole.items()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def inspect(folder: RunFolder, *, raw_files: bool, unhashed: Container[str] = ()) -> Inspection:
    """Look at every cell; with ``raw_files`` hash their raw files too, but for the cells ``unhashed``."""
    whole: dict[str, str] = {}
    damaged: dict[str, tuple[str, ...]] = {}
    without_digest = int(not folder.stored.has_digest)
    names = dict.fromkeys(folder.names())
    for name in names:
        stored, problems = _look(folder, name, raw_files=raw_files and name not in unhashed)
        if stored is None or problems:
            damaged[name] = problems
        else:
            whole[name] = stored.sha256
            without_digest += not stored.has_digest
    return Inspection(
        run_sha256=folder.stored.sha256,
        whole=whole,
        damaged=damaged,
        around=tuple(_around(folder)),
        not_run=tuple(cell_id for cell_id in folder.planned if cell_id not in names),
        without_digest=without_digest,
    )


def _look(folder: RunFolder, name: str, *, raw_files: bool) -> tuple[Stored | None, tuple[str, ...]]:
    try:
        cell = folder.cell(name)
    except StoreError as error:
        return None, (str(error),)
    return cell.stored, tuple(cell.damage(hashes=raw_files))


def require_whole_cells(folder: RunFolder) -> None:
    """Raise StoreError when a cell is damaged, raw files aside.

    Nothing is to be added to such a folder, and no cell run again unasked.
    """
    damaged = inspect(folder, raw_files=False).damaged
    if damaged:
        raise StoreError(summary_of(tuple(problem for each in damaged.values() for problem in each)))


REMEDY = (
    "take the folder from where it came again, or remove what is named and give the same fabbbr run once more"
)


def summary_of(problems: tuple[str, ...]) -> str:
    """One line: the first problem, how many there are, and the remedy."""
    more = "" if len(problems) == 1 else f" ({len(problems)} problems in all; fabbbr verify lists them)"
    return f"{problems[0]}{more}; {REMEDY}"


def _around(folder: RunFolder) -> list[str]:
    """What is wrong with the copies of the experiment file and of modules."""
    known = folder.manifest.experiment_sha256
    try:
        if known and sha256_of_own(folder.path / EXPERIMENT, limit=LARGEST_RECORD_BYTES) not in known:
            return [f"{EXPERIMENT} is not the file that was run: its sha256 is not in {RUN}"]
        return list(_modules(folder))
    except StoreError as error:
        return [str(error)]


def _modules(folder: RunFolder) -> Iterator[str]:
    """Kept sources that are not those of the module that ran."""
    ran = {flow.module.sha256 for cell in folder.planned.values() for flow in cell.flows if flow.module}
    for sha256 in sorted(ran):
        contents = folder.kept_module(sha256)
        place = f"{MODULES}/{sha256[:16]}"
        if contents is not None and Sources(place=Path(place), contents=contents).sha256 != sha256:
            yield f"{place} is not the module that was run: its sha256 is not {sha256[:16]}…"
