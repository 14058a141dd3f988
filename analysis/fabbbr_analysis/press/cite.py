"""BibTeX of a run, of the papers whose experiment it reruns, and of fabbbr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabbbr.counts import counted
from fabbbr.errors import StoreError
from fabbbr_analysis.press import latex
from fabbbr_analysis.press.caption import made_by
from fabbbr_analysis.references.bibliography import cited
from fabbbr_analysis.wording import distinct

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

SOFTWARE_TITLE = "fabbbr: TCP congestion control over wide-area networks, rerun in virtual time with evidence"
"""As in CITATION.cff."""
_BREAK_EVERY = 8


def bibtex(run_set: RunSet) -> str:
    """Return the entries; raise StoreError for a damaged run, which has no digest to cite it by."""
    versions = distinct(origin.fabbbr_version for origin in run_set.origins())
    papers = cited(str(run_set.manifest.experiment.get("source") or ""))
    software = [_software(version) for version in versions]
    return "\n\n".join([_run(run_set), *papers.values(), *software, ""])


def digest_of(run_set: RunSet) -> str:
    """The digest of the whole run; raise StoreError when it has none."""
    digest = None if run_set.found is None else run_set.found.digest
    if digest is None:
        message = f"{run_set.path} has no digest to cite it by, for it is damaged; see: fabbbr verify"
        raise StoreError(message)
    return digest


def _run(run_set: RunSet) -> str:
    manifest, digest = run_set.manifest, digest_of(run_set)
    name = str(manifest.experiment.get("id", manifest.source_name))
    title = str(manifest.experiment.get("title") or name)
    source = str(manifest.experiment.get("source") or "")
    after = f", after {latex.escaped(source)}" if source else ""
    note = (
        f"Experiment {latex.escaped(name)}{after}; {counted(len(run_set.cells), 'cell')}, "
        f"seed {manifest.seed}. {latex.escaped(made_by(run_set))}. "
        f"Digest of the run: sha256 {_breakable(digest)}"
    )
    return _entry(
        f"run-{latex.label('', name).removeprefix(':')}-{digest[:8]}",
        {
            "key": "fabbbr",
            "title": f"{{{latex.escaped(title)}: a run of fabbbr}}",
            "year": manifest.created[:4],
            "note": note,
            "sha256": digest,
            **{f"image_sha256_{n}" if n > 1 else "image_sha256": each for n, each in _images(run_set)},
        },
        remark="% Say in author who ran it, and in url where the run folder is.",
    )


def _images(run_set: RunSet) -> list[tuple[int, str]]:
    machines = [machine for origin in run_set.origins() for machine in origin.testbed.machines.values()]
    digests = distinct(each for machine in machines if (each := machine.image_sha256) is not None)
    return list(enumerate(digests, start=1))


def _software(version: str) -> str:
    return _entry(
        f"fabbbr-{version}",
        {
            "author": "{The fabbbr authors}",
            "title": f"{{{SOFTWARE_TITLE}}}",
            "howpublished": f"Software, version {version}",
        },
    )


def _entry(key: str, fields: dict[str, str], *, remark: str = "") -> str:
    said = [remark] if remark else []
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([*said, f"@misc{{{key},", *lines, "}"])


def _breakable(digest: str) -> str:
    r"""A digest that fits a column: TeX may break it after every eight digits.

    >>> print(_breakable("0123456789abcdef"))
    \texttt{01234567\allowbreak 89abcdef}
    """
    parts = [digest[start : start + _BREAK_EVERY] for start in range(0, len(digest), _BREAK_EVERY)]
    return r"\texttt{" + r"\allowbreak ".join(parts) + "}"
