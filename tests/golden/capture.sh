#!/bin/bash
# Makes the golden captures again: three network namespaces on a veth chain, tb-a -- tb-s -- tb-b, with a TBF on
# the way to tb-b. Needs root, iperf3, iproute2 and ethtool; touches nothing outside its namespaces.
# Usage: capture.sh FOLDER
set -euo pipefail
out=$(realpath "${1:?give the folder to write to}")
mkdir -p "$out"

cleanup() { for ns in tb-a tb-s tb-b; do ip netns del "$ns" 2>/dev/null || true; done; }
trap cleanup EXIT
cleanup
for ns in tb-a tb-s tb-b; do ip netns add "$ns"; ip -n "$ns" link set lo up; done
ip link add a-eth0 netns tb-a type veth peer name s1-eth1 netns tb-s
ip link add b-eth0 netns tb-b type veth peer name s1-eth2 netns tb-s
ip -n tb-a addr add 10.0.1.1/24 dev a-eth0
ip -n tb-s addr add 10.0.1.2/24 dev s1-eth1
ip -n tb-s addr add 10.0.2.2/24 dev s1-eth2
ip -n tb-b addr add 10.0.2.1/24 dev b-eth0
ip -n tb-a -6 addr add fd00:1::1/64 dev a-eth0 nodad
ip -n tb-s -6 addr add fd00:1::2/64 dev s1-eth1 nodad
ip -n tb-s -6 addr add fd00:2::2/64 dev s1-eth2 nodad
ip -n tb-b -6 addr add fd00:2::1/64 dev b-eth0 nodad
for pair in tb-a:a-eth0 tb-s:s1-eth1 tb-s:s1-eth2 tb-b:b-eth0; do
  ip -n "${pair%%:*}" link set "${pair##*:}" up
  ip netns exec "${pair%%:*}" ethtool -K "${pair##*:}" tso off gso off gro off >/dev/null 2>&1 || true
done
ip -n tb-a route add default via 10.0.1.2
ip -n tb-b route add default via 10.0.2.2
ip -n tb-a -6 route add default via fd00:1::2
ip -n tb-b -6 route add default via fd00:2::2
ip netns exec tb-s sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1

on() { local ns=$1; shift; ip netns exec "$ns" "$@"; }
# flow NAME CCA [client options...]: one iperf3 run, both ends kept
flow() {
  local name=$1; shift
  on tb-b iperf3 -s -1 -J -p 5201 >"$out/iperf3-$name.server.json" & local server=$!
  sleep 0.4
  on tb-a iperf3 -c "${TARGET:-10.0.2.1}" -J -p 5201 --cport 32768 "$@" >"$out/iperf3-$name.client.json" || true
  wait "$server" || true
}
# sample SECONDS PERIOD: ss on both hosts and tc on the switch, as the sampler of a run writes them
sample() {
  local start now; start=$(date +%s.%N)
  for file in a.txt a.times b.txt b.times; do : >"$out/sockets.$1.$file"; done
  : >"$out/queues.$1.json"; : >"$out/queues.$1.times"
  while now=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN{printf "%.6f", b-a}'); awk -v n="$now" -v e="$2" 'BEGIN{exit !(n<e)}'; do
    for host in a b; do
      text=$(on "tb-$host" ss -tinmOH | sed 's/[ \t]*$//')
      echo "$now $(grep -c . <<<"$text" || true)" >>"$out/sockets.$1.$host.times"
      [ -z "$text" ] || echo "$text" >>"$out/sockets.$1.$host.txt"
    done
    on tb-s tc -s -j qdisc show | tr -d '\n' >>"$out/queues.$1.json"; echo >>"$out/queues.$1.json"
    echo "$now" >>"$out/queues.$1.times"
    sleep "$3"
  done
}

on tb-s tc qdisc add dev s1-eth2 root handle 1: tbf rate 20mbit burst 4kb limit 30000
flow normal -t 3 -C cubic
flow parallel -t 2 -P 3 -C bbr
flow reverse -t 2 -R
flow omitted -t 2 -O 1
flow bytes -n 2M -C cubic
TARGET=fd00:2::1 flow ipv6 -t 1

: "refused: nobody listens"
on tb-a iperf3 -c 10.0.2.1 -J -p 5299 -t 1 >"$out/iperf3-refused.client.json" || true
: "the client is interrupted; the server sees it go"
on tb-b iperf3 -s -1 -J -p 5201 >"$out/iperf3-interrupted.server.json" & server=$!
sleep 0.4
on tb-a timeout -s INT 2.5 iperf3 -c 10.0.2.1 -J -p 5201 -t 10 >"$out/iperf3-interrupted.client.json" || true
wait "$server" || true
: "the client is killed outright: it prints nothing"
on tb-b iperf3 -s -1 -J -p 5201 >"$out/iperf3-killed.server.json" & server=$!
sleep 0.4
on tb-a timeout -s KILL 2.5 iperf3 -c 10.0.2.1 -J -p 5201 -t 10 >"$out/iperf3-killed.client.json" || true
wait "$server" || true

: "sockets and queues under drops: flow 0 is bbr, flow 1 cubic, as in a run"
for i in 0 1; do on tb-b iperf3 -s -1 -J -p $((5201 + i)) >"$out/iperf3-rivals-$i.server.json" & done
sleep 0.4
on tb-a iperf3 -c 10.0.2.1 -J -t 4 -p 5201 --cport 32768 -C bbr >"$out/iperf3-rivals-0.client.json" &
on tb-a iperf3 -c 10.0.2.1 -J -t 4 -p 5202 --cport 32832 -P 2 -C cubic >"$out/iperf3-rivals-1.client.json" &
sample rivals 5 0.25
wait

: "a queue below the TBF, htb behind it, and IPv6; where the kernel has it, set AQM=\"fq_codel limit 1000 ecn\""
on tb-s tc qdisc replace dev s1-eth2 root handle 1: tbf rate 20mbit burst 4kb limit 300000
on tb-s tc qdisc add dev s1-eth2 parent 1:1 handle 10: ${AQM:-bfifo limit 60000}
on tb-s tc qdisc add dev s1-eth1 root handle 2: htb default 1
on tb-s tc class add dev s1-eth1 parent 2: classid 2:1 htb rate 1gbit
on tb-a sysctl -qw net.ipv4.tcp_ecn=1
on tb-b iperf3 -s -1 -J -p 5201 >/dev/null & server=$!
sleep 0.4
on tb-a iperf3 -c fd00:2::1 -J -t 2 -p 5201 --cport 32768 -C cubic >/dev/null &
sample aqm 2 0.25
wait
: "the two-line form with its header"
on tb-b iperf3 -s -1 -J -p 5201 >/dev/null & server=$!
sleep 0.4
on tb-a iperf3 -c 10.0.2.1 -J -t 1 -p 5201 -C bbr >/dev/null &
sleep 0.5
on tb-a ss -tinm >"$out/sockets.twoline.txt"
on tb-a ss -tin >>"$out/sockets.twoline.txt"
wait
