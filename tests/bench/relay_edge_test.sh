#!/bin/sh
# labels: long nosan
# timeout: 3000
# alone: yes
#
# Relays between network namespaces whose links carry 200 Mbit/s: 8 members, 2 servers, 2 relays with 4 members each.
# Counts the bytes at the servers' links with and without relays, and kills a relay 20 times while members push. Every
# member checks every sum. Skipped without root or iproute2.
#
#   RELAY_TICKS=n   ticks of each run (20)
#   RELAY_SIZE=n    bytes of a push (1m)
#   RELAY_KILLS=n   kills of a relay (20)
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}
ticks=${RELAY_TICKS:-20} size=${RELAY_SIZE:-1m} kills=${RELAY_KILLS:-20}
mine=pawl$$
hosts='m s1 s2 r1 r2 w1 w2 w3 w4 w5 w6 w7 w8'

drop_all() {
  finish
  for host in sw $hosts; do ip netns del "$mine-$host" 2>/dev/null || true; done
}
trap drop_all EXIT

# on HOST COMMAND…: runs there.
on() {
  where=$1
  shift
  ip netns exec "$mine-$where" "$@"
}

if [ "$(id -u)" -ne 0 ] || ! command -v tc >/dev/null || ! ip netns add "$mine-sw" 2>/dev/null; then
  echo 'skipped: needs root, iproute2 and network namespaces' >&2
  exit 77
fi

# A switch, and a link of 200 Mbit/s in both directions to each host.
on sw ip link add hub type bridge
on sw ip link set hub up
number=0
for host in $hosts; do
  number=$((number + 1))
  ip netns add "$mine-$host"
  ip -n "$mine-sw" link add name "to-$host" type veth peer name eth netns "$mine-$host"
  on sw ip link set "to-$host" master hub up
  on "$host" ip link set lo up
  on "$host" ip addr add "10.213.78.$number/24" dev eth
  on "$host" ip link set eth up
  on sw tc qdisc add dev "to-$host" root tbf rate 200mbit burst 64k limit 2m
  on "$host" tc qdisc add dev eth root tbf rate 200mbit burst 64k limit 2m
done

"$pawl" key new cluster.key >out
export PAWL_KEY_FILE="$work/cluster.key" PAWL_ADDRESS=10.213.78.1:7295
# start_on NAME HOST COMMAND…
start_on() {
  what=$1 place=$2
  shift 2
  start "$what" ip netns exec "$mine-$place" "$@"
}
start_on manager m "$pawl" manager --listen 10.213.78.1:7295 --http none --first-servers 2 --replicas 0 --data none
for server in 1 2; do
  start_on server$server s$server "$pawl" server --join "$PAWL_ADDRESS" --http none --host s$server --transport tcp
done

start_relay() {
  start_on "relay$1" "r$1" "$pawl" relay --join "$PAWL_ADDRESS" --host "r$1" --rack "rack$1" --tree none --transport tcp
}

# Bytes at the links of the servers so far: in both directions.
edge() {
  sum=0
  for server in s1 s2; do
    for way in rx tx; do
      sum=$((sum + $(on sw cat "/sys/class/net/to-$server/statistics/${way}_bytes")))
    done
  done
  echo $sum
}

# members NAME TICKS SIZE [OPTION]
members() {
  waited=
  for worker in 1 2 3 4 5 6 7 8; do
    rack=rack1
    [ $worker -le 4 ] || rack=rack2
    PAWL_RACK=$rack on w$worker "$bench" relay --name "$1" --members 8 --ticks "$2" --size "$3" ${4:+"$4"} --json \
      >"$1.$worker.log" 2>&1 &
    pids="$pids $!"
    waited="$waited $!"
  done
}

all_right() {
  for pid in $waited; do wait "$pid" || fail "a member of $1 fails"; done
}

member_of() { sed -n "s/.*\"$2\": *\([0-9.]*\).*/\1/p" "$1.1.log"; }

# measure CASE [OPTION]
measure() {
  before=$(edge)
  members "$1" "$ticks" "$size" "${2:-}"
  all_right "$1"
  echo "{\"case\": \"$1\", \"edge_bytes\": $(($(edge) - before)), \"seconds\": $(member_of "$1" seconds)," \
    "\"median_tick_s\": $(member_of "$1" median_tick_s), \"ticks\": $ticks, \"size\": \"$size\"}"
}

measure direct
direct=$(($(edge) - before))
measure direct-pulls --pull
direct_pulls=$(($(edge) - before))
start_relay 1
start_relay 2
measure relays
relayed=$(($(edge) - before))
# Of 8 messages each way two are left. The first tick makes links, and on a busy machine links are lost for a while.
[ $((relayed * 10)) -lt $((direct * 9)) ] || fail "relays save too little: $relayed bytes instead of $direct"
measure pulls --pull
relayed=$(($(edge) - before))
[ $((relayed * 10)) -lt $((direct_pulls * 9)) ] ||
  fail "relays save too little of pushes and pulls: $relayed bytes instead of $direct_pulls"

# --- a relay is killed again and again while members push ---

members storm $((kills * 60)) 64k
killed=0
while [ $killed -lt "$kills" ]; do
  eval "kill -KILL $(pgrep -P "$started" || echo "$started")"
  wait "$started" 2>/dev/null || true
  start_relay 2
  killed=$((killed + 1))
  sleep 0.3
done
all_right storm
echo "{\"case\": \"storm\", \"kills\": $killed, \"lost\": 0, \"doubled\": 0, \"median_tick_s\": $(member_of storm \
  median_tick_s), \"slowest_tick_s\": $(member_of storm slowest_tick_s), \"seconds\": $(member_of storm seconds)}"
