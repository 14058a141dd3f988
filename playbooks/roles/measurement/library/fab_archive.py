#!/usr/bin/python
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause

DOCUMENTATION = """
---
module: fab_archive
short_description: Texts as one file that Python can import from
description:
  - Writes texts into one zip archive on the node, the same bytes whenever they are the same texts.
options:
  file:
    description: The archive.
    type: path
    required: true
  files:
    description: Name in the archive → text.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Says whether the archive would be another.
author: The fabbbr authors
"""

EXAMPLES = """
- name: Put a package of one module
  fab_archive:
    file: /opt/greeter.zip
    files:
      greeter/__init__.py: ""
      greeter/hello.py: |
        print("hello")
"""

RETURN = """
file:
  description: The archive.
  type: str
  returned: success
  sample: /opt/greeter.zip
sha256:
  description: Its digest.
  type: str
  returned: success
  sample: 01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b
"""

import hashlib
import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Dict

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {"file": {"type": "path", "required": True}, "files": {"type": "dict", "required": True}}
EPOCH = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    file, content = Path(module.params["file"]), packed(module.params["files"])
    if not module.params["files"]:
        module.fail_json(msg=f"there is nothing to put into {file}: name at least one file")
    try:
        changed = not file.is_file() or file.read_bytes() != content
        if changed and not module.check_mode:
            write_whole(file, content)
        module.exit_json(changed=changed, file=str(file), sha256=hashlib.sha256(content).hexdigest())
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")


def packed(files: Dict[str, str]) -> bytes:
    """The archive's bytes: sorted, not compressed, and without the time of packing."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text.encode("utf-8"))
    return content.getvalue()


def write_whole(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=str(file.parent), prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink()
        raise


if __name__ == "__main__":
    main()
