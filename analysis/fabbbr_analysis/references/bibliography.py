"""The papers whose experiments are rerun, as BibTeX."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_SAID = {
    "cardwell2016bbr": r"Cardwell et al\.,? 2016",
    "hsiao2017rebbr": r"Hsiao and Muindi,? 2017",
    "gomez2023fabric": r"Gomez et al\.,? (BlackSeaCom )?2023|KNIT6 talk 2023",
    "kfoury2020bbrv2": r"Kfoury et al\.,? 2020",
    "ware2019modeling": r"Ware et al\.,? 2019",
    "datta2023replication": r"Datta and Fund,? (IMC )?2023",
    "cao2019when": r"Cao et al\.,? (IMC )?2019",
    "song2021understanding": r"Song et al\.,? 2021",
}
"""Key of an entry → how the ``source`` of an experiment file names the paper."""


@cache
def entries() -> dict[str, str]:
    """Key → BibTeX entry, as in ``papers.bib``."""
    text = (resources.files(__package__) / "papers.bib").read_text(encoding="utf-8")
    found = re.findall(r"^(@\w+\{([^,]+),\n.*?^\}$)", text, flags=re.MULTILINE | re.DOTALL)
    return {key: entry for entry, key in found}


def cited(source: str) -> dict[str, str]:
    """Key → entry of every paper that the ``source`` of an experiment names; often none.

    >>> list(cited("Kfoury et al. 2020, Fig. 8; Song et al. 2021"))
    ['kfoury2020bbrv2', 'song2021understanding']
    """
    return {key: entries()[key] for key, said in _SAID.items() if re.search(said, source)}
