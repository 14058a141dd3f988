#!/bin/sh
# First process of a node: its own mounts, then sshd in its place. $1: its root, mounted; $2: its name; $3: what
# becomes of sshd: open, never, or the seconds that it waits.
set -eu
root=$1 name=$2 ssh=$3

mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
# To be read only, but for the profile of fabbbr's own BBR where the kernel is a guest's: it ends with the sandbox.
bbr=$root/sys/module/fab_bbr/parameters
if [ -d "$bbr" ] && grep -q 'User Mode Linux' /proc/cpuinfo; then
    mount --bind "$bbr" "$bbr"
fi
mount -o remount,bind,ro "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"

# What is not of a name space is of the machine that carries us: to be read only.
for shared in kernel vm fs dev debug; do
    if [ -d "$root/proc/sys/$shared" ]; then
        mount --bind "$root/proc/sys/$shared" "$root/proc/sys/$shared"
        mount -o remount,bind,ro "$root/proc/sys/$shared"
    fi
done
[ ! -e "$root/proc/sysrq-trigger" ] || mount --bind /dev/null "$root/proc/sysrq-trigger"

# net.core of the machine is read-only or hidden in a name space. Playbooks write to it all the same: here
# such a value is kept and read back, without being in force.
core=$root/proc/sys/net/core
kept=$root/run/.net.core
mkdir "$kept" "$root/run/.net.core.own"
mount --bind "$core" "$root/run/.net.core.own"
for own in "$core"/*; do
    if [ -w "$own" ] && [ "$(stat -c %a "$own")" != 444 ]; then
        : > "$kept/${own##*/}"
    else
        cat "$own" > "$kept/${own##*/}"
    fi
done
while read -r key value; do
    [ -e "$kept/$key" ] || echo "$value" > "$kept/$key"
done <<'.'
default_qdisc fq_codel
netdev_max_backlog 1000
netdev_budget 300
netdev_budget_usecs 2000
bpf_jit_enable 1
.
mount --bind "$kept" "$core"
for own in "$root"/run/.net.core.own/*; do
    if [ "$(stat -c %a "$own")" != 444 ]; then
        mount --bind "$own" "$core/${own##*/}"
    fi
done

cd "$root"
pivot_root . .
umount -l .
cd /
hostname "$name"
mkdir -p /run/sshd
case $ssh in
    open) ;;
    never) exec sleep 2147483647 ;;
    *) sleep "$ssh" ;;
esac
# Modules, the clock and raw devices are the carrying machine's.
exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio -- /usr/sbin/sshd -D -e
