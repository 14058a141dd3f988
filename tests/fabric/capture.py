"""Record what a double of FABRIC answers to fablib: ``PYTHONPATH=tests`` beside it."""

import json
import sys
import time
from pathlib import Path

from fabric_wishes import all_kinds, two_sites

from fabbbr.backends.fabric.fablib import FablibWire, utc_now
from fabbbr.backends.fabric.provider import FabricProvider


def main(folder):
    wire = FablibWire(folder / "state", now=utc_now)
    provider = FabricProvider(folder / "state", wire=wire)
    near, far = "DALL", "SALT"
    wire.make_keys()
    last = {}
    manager = wire._opened[1]
    for client in (manager.orch, manager.credmgr):
        client.session.hooks["response"].append(lambda answer, **_: last.update(answer=answer.content))

    def keep(name, ask):
        ask()
        answer = json.loads(last["answer"])
        (folder / f"{name}.json").write_text(json.dumps(answer, separators=(",", ":")) + "\n")

    keep("summary", wire.summary)
    keep("token", wire.token)
    for name, wish in (
        ("kinds", all_kinds("kinds", near, far)),
        ("nowhere", two_sites("nowhere", near, "MOON")),
    ):
        graph = wire.composed(wish)
        key = Path(wire.settings().slice_public_key).read_text().strip()
        wire.create(name, graph, key=key, until=utc_now().replace(year=utc_now().year + 1))
        live = provider.find(name)
        keep(f"{name}.first", lambda live=live: wire.full(live.id))
        while live.state == "configuring":
            time.sleep(0.2)
            live = provider.refresh(live)
        keep(f"{name}.last", lambda live=live: wire.full(live.id))
        keep(f"{name}.slivers", lambda live=live: wire.slivers(live.id))
        keep(f"{name}.listed", lambda name=name: wire.named(name))
        provider.delete(live)
    provider.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
