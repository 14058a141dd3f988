"""One module per group of subcommands: ``def main(arguments) -> int``, the only code that prints.

Each is imported when its command is given, so that help and completion stay instant.
"""
