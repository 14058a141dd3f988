"""What ``import fabbbr as fb`` offers at a prompt, in a script and in a notebook: see :mod:`fabbbr`."""
