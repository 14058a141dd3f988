#!/bin/sh
# First process of the guest. Its root is the host's file system, read-only; whatever must be writable is memory, and
# one folder of the host takes the results. FABBBR_RUNTIME comes from the kernel's command line and has no blanks.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
# hostfs takes its folder from the old mount(2) only, and util-linux from 2.39 on (Debian 13) prefers the new one.
export LIBMOUNT_FORCE_MOUNT2=always
mount -a -T "$FABBBR_RUNTIME/fstab" || echo "fabbbr: a file system could not be mounted"
cd /run/fabbbr || exit 1
mkdir -p /run/netns /var/log /var/lib /var/tmp /run/lock
if [ -n "$FABBBR_MODULES" ]; then
	# A kernel of the distribution: what ours has built in are modules here.
	mkdir -p /run/modules/lib
	ln -s "$FABBBR_MODULES" /run/modules/lib/modules
	for module in veth bridge sch_tbf sch_netem sch_prio sch_ingress sch_codel sch_fq_codel sch_cake sch_red sch_pie \
		sch_fq_pie cls_u32 cls_matchall act_mirred tcp_diag tcp_bbr tcp_htcp tcp_bic tcp_westwood tcp_vegas tcp_illinois \
		tcp_hybla tcp_dctcp tcp_highspeed tcp_scalable tcp_veno tcp_yeah tcp_lp tcp_nv tcp_cdg; do
		modprobe -q -d /run/modules "$module"
	done
fi
ip link set lo up
# The kernel lets all TCP sockets together have an eighth of the memory before it shrinks windows and drops what
# arrived. Here they may have three quarters: a guest does nothing else, and a host under pressure is not what is studied.
while read -r name kilobytes _; do
	[ "$name" = MemTotal: ] && pages=$((kilobytes / 4))
done < /proc/meminfo
echo "$((pages / 2)) $((pages * 3 / 4)) $((pages * 3 / 4))" > /proc/sys/net/ipv4/tcp_mem
exec </dev/null
# ping misbehaves while the clock reads less than a second.
sleep 2
timeout "$FABBBR_LIMIT" "$FABBBR_PYTHON" -m agent.lab work/job.json work
echo $? > work/exit
sync
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
