"""The guest image of fabbbr: ``linux``, ``root.cpio``, and ``image.json``: what they were made from.

Nothing here is to be imported: fabbbr finds the files.
"""
