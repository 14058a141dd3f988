#!/bin/sh
# Stands in for the guest's kernel: leaves the raw files of a real cell, as its agent would. GOLDEN is the folder of that cell.
# It is started in the folder of the guest's temporary files.
cd work || exit 1
echo 1.000 > heartbeat
cp "$GOLDEN"/raw/* raw/ && echo '{"ok": true, "elapsed_s": 7.5}' > outcome.json && echo 0 > exit
