"""What the timeline has to know of a batch: a task whose two programs are :mod:`agent.batch`, for many flows."""

import json
import os
from typing import Any, Dict, Iterator, List, Optional

_FLOW_FAILED = 1


def name(batch: Dict[str, Any]) -> str:
    """Of its raw files."""
    return "batch-%d" % batch["index"]


def words(task: Dict[str, Any], epoch_s: Optional[float] = None) -> List[str]:
    """What its programs are told besides their arguments: the flows, and the sender when their time began."""
    if "flows" not in task:
        return []
    told = ["--flows", json.dumps(task["flows"])]
    return told if epoch_s is None else [*told, "--epoch", "%.9f" % epoch_s]


def ports(batch: Dict[str, Any]) -> List[int]:
    """On which its receiver listens."""
    return [flow["port"] for flow in batch["flows"]]


def records(batch: Dict[str, Any], record: Dict[str, Any], folder: str) -> Iterator[Dict[str, Any]]:
    """Of each flow what the timeline would have noted of programs of its own; ``record`` is of those that all shared."""
    stem = os.path.join(folder, name(batch))
    sent, received = (_told(stem, side) for side in ("client", "server"))
    for flow in batch["flows"]:
        index = flow["index"]
        own = {"flow": index, "batch": batch["index"], **record}
        if index in received:
            own["server_exit"] = _exit_status(received[index])
        if index in sent:
            own["client_exit"] = _exit_status(sent[index])
            own["timed_out"] = sent[index]["timed_out"]
            own["ended_s"] = sent[index]["ended_s"] - record["epoch_s"]
            if sent[index]["started_s"] is not None:
                own["started_s"] = sent[index]["started_s"] - record["epoch_s"]
        yield own


def _told(stem: str, side: str) -> Dict[int, Dict[str, Any]]:
    """Flow → its document; nothing where the program left none, whose exit status then stands for all."""
    try:
        with open("%s.%s.json" % (stem, side)) as file:
            return {int(index): flow for index, flow in json.load(file)["flows"].items()}
    except (OSError, ValueError):
        return {}


def _exit_status(document: Dict[str, Any]) -> int:
    return 0 if document["error"] is None else _FLOW_FAILED
