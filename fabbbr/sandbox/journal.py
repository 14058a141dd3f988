"""What happened, as JSON lines: every request, and every event of the double."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timezone
from pathlib import Path


class Journal:
    """Appends to ``requests.jsonl`` and ``events.jsonl`` in a folder; safe from any thread."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()
        for name in ("requests", "events"):
            self._path(name).touch()

    def request(self, **fields: object) -> None:
        """Note a request that was answered."""
        self._append("requests", fields)

    def event(self, what: str, **fields: object) -> None:
        """Note something that the double did, or met with."""
        self._append("events", {"event": what} | fields)

    def requests(self) -> list[dict[str, object]]:
        """Every request so far."""
        return self._read("requests")

    def events(self) -> list[dict[str, object]]:
        """Every event so far."""
        return self._read("events")

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"

    def _append(self, name: str, fields: dict[str, object]) -> None:
        line = json.dumps({"time": datetime.now(timezone.utc).isoformat()} | fields, default=str)
        with self._lock, self._path(name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _read(self, name: str) -> list[dict[str, object]]:
        with self._lock:
            return [json.loads(line) for line in self._path(name).read_text(encoding="utf-8").splitlines()]
