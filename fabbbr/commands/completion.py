"""``fabbbr completion``: the lines that switch on completion in a shell."""

from __future__ import annotations

import argparse


def main(arguments: argparse.Namespace) -> int:
    """Print them, for ``eval "$(fabbbr completion bash)"``."""
    import argcomplete

    print(argcomplete.shellcode(["fabbbr"], shell=arguments.shell))  # type: ignore[attr-defined]
    return 0
