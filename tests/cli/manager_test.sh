#!/bin/sh
# A manager with a log on disk, killed and started again; logs that it must not begin with; and a server that an operator
# has leave.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
always='--http none'

is_ready() { "$pawl" status $patience | grep -q ': ready'; }

# --- where the log is ---

start manager "$pawl" manager --listen 127.0.0.1:0
grep -q 'none (in memory)' manager.log || fail 'a manager at any port does not say that it keeps no log'
kill -KILL "$started"

mkdir home
start manager env HOME="$work/home" "$pawl" manager --listen "unix:$work/socket"
log=$(sed -n 's/^ *its log: *//p' manager.log)
[ -f "$log" ] || fail "there is no log at '$log'"
case $log in "$work/home/.local/state/pawl/"*) ;; *) fail "the log is at $log" ;; esac
[ "$(stat -c %a "$log")" = 600 ] || fail 'others can read the log'
kill -KILL "$started"

# --- a cluster, whose manager is killed ---

start manager "$pawl" manager --listen 127.0.0.1:0 --data "$work/deep/data"
manager=$started
address=$(address_of manager)
export PAWL_ADDRESS="$address"
start first "$pawl" server --join "$address"
first=$started
start second "$pawl" server --join "$address" --shards 2
second=$started
eventually is_ready || fail 'the cluster is not ready'
expect 0 "$pawl" put $patience a/w --create --size 1000 1=1 500=2 999=3
expect 1 "$pawl" manager --listen 127.0.0.1:0 --http none --data deep/data
complained 'another manager uses the log'
complained '--data'

kill -KILL "$manager"
eventually is_gone "$manager" || fail 'the manager does not die'
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
manager=$started
grep -q 'continues cluster' manager.log || fail 'the manager does not say that it goes on'
eventually is_ready || fail 'the cluster is not ready again'
expect 0 "$pawl" get $patience a/w 1,500,999
printf '1 1\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"
expect 0 "$pawl" put $patience a/w 1=1

# --- logs that are not begun with ---

kill -KILL "$manager"
eventually is_gone "$manager" || fail 'the manager does not die'
cp deep/data/manager.log good.log
size=$(stat -c %s good.log)
for at in 3 9 20 60 $((size / 2)) $((size - 1)); do
  cp good.log deep/data/manager.log
  byte=$(od -An -tu1 -j "$at" -N 1 good.log)
  # shellcheck disable=SC2059
  printf "\\$(printf %o $((byte ^ 16)))" | dd of=deep/data/manager.log bs=1 seek="$at" conv=notrunc 2>/dev/null
  cp deep/data/manager.log damaged.log
  expect 1 "$pawl" manager --listen "$address" --http none --data deep/data
  complained 'is damaged or is not the log'
  cmp -s deep/data/manager.log damaged.log || fail 'a damaged log was changed'
done
echo 'shopping: milk, eggs' >deep/data/manager.log
expect 1 "$pawl" manager --listen "$address" --http none --data deep/data
complained 'is damaged or is not the log'
expect 1 "$pawl" manager --listen "$address" --http none --data good.log
complained '--data'
expect 2 "$pawl" manager --data ''
complained 'expected a directory'

# A log that is new is another cluster, and one that is too old is not believed: the servers wait for theirs.
rm deep/data/manager.log
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
eventually grep -q 'manager.other.*CLUSTER_OTHER' first.log || fail 'the server does not say that the manager is another one'
kill -KILL "$started"
eventually is_gone "$started" || fail 'the manager does not die'
head -c 140 good.log >deep/data/manager.log # its first record or two
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
eventually grep -q 'manager.stopped.*CLUSTER_HISTORY' manager.log || fail 'the manager does not stop'
kill -KILL "$started"
eventually is_gone "$started" || fail 'the manager does not die'

# --- with the right one everything goes on ---

cp good.log deep/data/manager.log
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
manager=$started
eventually is_ready || fail 'the cluster is not ready with its own log'
expect 0 "$pawl" get $patience a/w 1,500,999
printf '1 2\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"

# --- an operator has a server leave ---

expect 1 "$pawl" server drain $patience 77
complained 'server 77 not found'
expect 2 "$pawl" server drain
expect 0 "$pawl" server drain $patience "$(address_of second)" --json
said '"left":true}$'
eventually is_gone "$second" || fail 'the server that was drained does not end'
code=0
wait "$second" || code=$?
[ "$code" -eq 0 ] || fail "the server that was drained ends with $code"
grep -q 'drained by an operator' second.log || fail 'it does not say why it ends'
expect 0 "$pawl" get $patience a/w 1,500,999
printf '1 2\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"
expect 0 "$pawl" status $patience
said 'arcs are under-replicated: 2 copies wanted; only 1 server processes are up'
expect 1 "$pawl" server drain $patience 1
complained 'the only one that is up'
is_gone "$first" && fail 'the first server is gone'

# --- all servers are gone for good: a new cluster ---

kill -KILL "$first"
eventually grep -q 'servers.gone' manager.log || fail 'the manager does not say that all servers are gone'
kill -KILL "$manager"
eventually is_gone "$manager" || fail 'the manager does not die'
start manager "$pawl" manager --listen "$address" --data "$work/deep/data" --new
manager=$started
[ -f deep/data/manager.log.old ] || fail 'the old log is not there any more'
start third "$pawl" server --join "$address"
eventually is_ready || fail 'the new cluster is not ready'
expect 1 "$pawl" get $patience a/w 1
complained 'vector .* not found'
kill -TERM "$manager"
code=0
wait "$manager" || code=$?
[ "$code" -eq 0 ] || fail "the manager ends with $code"

# --- libcurl is loaded for etcd only, and said to be missing if it is ---

mkdir broken
: >broken/libcurl.so.4
expect 0 env LD_LIBRARY_PATH="$PWD/broken${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$pawl" version
expect 1 env LD_LIBRARY_PATH="$PWD/broken${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
  "$pawl" manager --listen 127.0.0.1:0 --http none --data none --meta etcd://127.0.0.1:1/x
complained 'cannot load libcurl'
complained 'install it'
