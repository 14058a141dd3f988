#!/bin/sh
# First process of the guest. Its root is the host's file system, read-only; whatever must be writable is memory, and
# one folder of the host takes the results. FABBBR_RUNTIME comes from the kernel's command line and has no blanks.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
mount -a -T "$FABBBR_RUNTIME/fstab" || echo "fabbbr: a file system could not be mounted"
cd /run/fabbbr || exit 1
mkdir -p /run/netns /var/log /var/lib /var/tmp /run/lock
ip link set lo up
exec </dev/null
# ping misbehaves while the clock reads less than a second.
sleep 2
timeout "$FABBBR_LIMIT" "$FABBBR_PYTHON" -m agent.lab work/job.json work
echo $? > work/exit
sync
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
