"""Tables that netem draws delays from, where tc finds them."""

import contextlib
import os
import tempfile
from typing import Dict, Iterator

_FOLDER_OF_TC = "TC_LIB_DIR"


@contextlib.contextmanager
def readable(tables: Dict[str, str]) -> Iterator[None]:
    """In this block every tc that is started reads these distributions, by their names, and no others."""
    if not tables:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, numbers in tables.items():
            with open(os.path.join(folder, name + ".dist"), "w") as file:
                file.write(numbers)
        os.environ[_FOLDER_OF_TC] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER_OF_TC]
