"""Manifests as formats 1 and 2 had them, made from today's: what older folders look like."""

_OF_A_BOTTLENECK = ("rate", "buffer_bytes", "buffer_asked", "bdp_bytes", "aqm", "ecn", "both_directions")


def as_in_format_2(manifest):
    """The JSON of ``run.json`` or of a cell's manifest, without its digest."""
    found = {key: value for key, value in manifest.items() if key != "digest"} | {"format_version": 2}
    if "cells" in found:
        found["cells"] = [_cell(one) for one in found["cells"]]
    if "provenance" in found:
        found["cell"] = _cell(found["cell"])
        found["provenance"] = _provenance(found["provenance"])
    return found


def _cell(cell):
    return cell | {"timer_hz": 1000, "links": [_link(link) for link in cell["links"]]}


def _link(link):
    rest = {key: value for key, value in link.items() if key != "bottleneck"}
    now = link["bottleneck"]
    queue = (
        {key: now[key] for key in _OF_A_BOTTLENECK}
        if now
        else dict.fromkeys(_OF_A_BOTTLENECK)
        | {
            "aqm": "taildrop",
            "ecn": False,
            "both_directions": False,
        }
    )
    return rest | queue | {"burst_bytes": 1514 if now else None}


def _provenance(provenance):
    place = provenance["testbed"]
    ((_, machine),) = place["machines"].items()
    kernel = machine["kernel"]
    return {key: value for key, value in provenance.items() if key != "testbed"} | {
        "backend": place["backend"],
        "clock": place["clock"],
        "kernel_release": kernel["release"],
        "kernel_config_sha256": kernel["config_sha256"],
        "kernel_sha256": kernel["sha256"],
        "tools": machine["tools"],
    }
