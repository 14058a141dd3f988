"""Tells this machine's monotonic clock, once for each line it is given: for measuring how clocks differ."""

import sys
import time

if __name__ == "__main__":
    while sys.stdin.readline():
        sys.stdout.write("%.9f\n" % time.monotonic())
        sys.stdout.flush()
