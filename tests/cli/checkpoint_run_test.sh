#!/bin/sh
# Checkpoints of real processes: saved while pushes come in, everything killed, loaded into a cluster of another size.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# cluster SERVERS [OPTION…]: a manager and so many servers, on any port; its address is in PAWL_ADDRESS.
cluster() {
  servers=$1
  shift
  start "manager$servers" "$pawl" manager --listen 127.0.0.1:0 --http none --first-servers "$servers" "$@"
  PAWL_ADDRESS=$(address_of "manager$servers")
  export PAWL_ADDRESS
  i=0
  while [ $i -lt "$servers" ]; do
    start "server$servers.$i" "$pawl" server --join "$PAWL_ADDRESS" --http none --shards 2
    i=$((i + 1))
  done
}

kill_all() {
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  pids=
}

# size FILE…: bytes
bytes() { du -bc "$@" | tail -n 1 | cut -f 1; }

# --- save under load -----------------------------------------------------------------------------------------------------

cluster 3
awk 'BEGIN { for (i = 0; i < 20000; i++) print i, i * 2, i % 7 }' >dense
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "%.0f %d\n", i * 1000003, i + 1 }' >sparse
expect 0 "$pawl" put $patience test/dense --create --type i64 --width 2 --size 20000 --file dense
expect 0 "$pawl" put $patience test/sparse --create --type i64 --file sparse
expect 0 "$pawl" put $patience test/busy --create --type i64 --size 100 5=0

while [ ! -e quiet ]; do "$pawl" put $patience test/busy 5=1 >/dev/null 2>&1 || true; done &
load=$!
expect 0 "$pawl" checkpoint save $patience "$work/saved" --name first --json
said '"checkpoint": *"first"'
touch quiet
wait $load
expect 0 "$pawl" checkpoint verify saved/first
said 'is intact'
expect 0 "$pawl" checkpoint list saved
said first
expect 1 "$pawl" checkpoint save $patience "$work/saved" --name first
expect 1 "$pawl" checkpoint save $patience "$work/saved" --name '../x'
expect 0 "$pawl" status $patience --json
said last_checkpoint

# Only what has changed.
expect 0 "$pawl" put $patience test/dense 17=1000,0
expect 0 "$pawl" get $patience test/dense --limit 0
cp out dense.wanted
expect 0 "$pawl" get $patience test/sparse --limit 0
sort -n out >sparse.wanted
expect 0 "$pawl" get $patience test/busy 5
cp out busy.wanted
expect 0 "$pawl" checkpoint save $patience "$work/saved" --name second --incremental --json
said '"base": *"first"'
# A member that was filled meanwhile, as happens on a busy machine, saves all it has.
grep -q warn manager3.log || [ "$(bytes saved/second/*.pawl)" -lt "$(($(bytes saved/first/*.pawl) / 2))" ] || fail "the second one is not smaller"
expect 0 "$pawl" checkpoint verify saved/second

# --- disk full: clear words, nothing is left, the cluster goes on ------------------------------------------------------------

mkdir full
if mount -t tmpfs -o size=64k none full 2>/dev/null; then
  expect 1 "$pawl" checkpoint save $patience "$work/full"
  complained 'no space left'
  [ -z "$(ls full)" ] || fail "something is left: $(ls full)"
  umount full
fi
expect 0 "$pawl" put $patience test/busy 6=1
expect 1 "$pawl" checkpoint save $patience /proc/nowhere

# --- everything dies, and comes back in another size --------------------------------------------------------------------------

kill_all
cluster 2 --replicas 0
expect 0 "$pawl" checkpoint load $patience saved --json
said '"checkpoint": *"second"'
expect 0 "$pawl" get $patience test/dense --limit 0
cmp -s out dense.wanted || fail "test/dense is not what it was"
expect 0 "$pawl" get $patience test/sparse --limit 0
sort -n out >sparse.found
cmp -s sparse.found sparse.wanted || fail "test/sparse is not what it was"
expect 0 "$pawl" get $patience test/busy 5
cmp -s out busy.wanted || fail "test/busy is $(cat out), not $(cat busy.wanted)"

# Once more, over what is there, and from the older one.
expect 0 "$pawl" put $patience test/dense 3=5,5
expect 0 "$pawl" checkpoint load $patience saved/first
expect 0 "$pawl" get $patience test/dense --limit 0
grep -q '^17 *34 *3' out || fail "key 17 is not that of the first checkpoint: $(grep '^17 ' out)"
grep -q '^3 *6 *3' out || fail "key 3 is not that of the first checkpoint: $(grep '^3 ' out)"

# A vector of that name that is another one is left alone.
kill_all
cluster 1 --replicas 0
expect 0 "$pawl" put $patience test/dense --create --type f32 --size 10 1=1
expect 1 "$pawl" checkpoint load $patience saved/first
complained 'another type'
expect 0 "$pawl" get $patience test/dense 1
said '1'

# --- all servers are lost, the manager with them, and its log is kept: one command --------------------------------------------

kill_all
restarted() {
  start manager "$pawl" manager --listen 127.0.0.1:0 --http none --data "$work/log"
  PAWL_ADDRESS=$(address_of manager)
  start server.a "$pawl" server --join "$PAWL_ADDRESS" --http none
  start server.b "$pawl" server --join "$PAWL_ADDRESS" --http none
}
restarted
expect 0 "$pawl" put $patience test/dense --create --type i64 --width 2 --size 20000 --file dense
expect 0 "$pawl" checkpoint save $patience "$work/last"
kill_all
restarted
both_down() { [ "$("$pawl" status $patience | grep -c '^ *[0-9]* down ')" -eq 2 ]; }
eventually both_down || fail "not both are down: $("$pawl" status)"
gives_up 'wait for servers that are down and have the only copy: node 1, 2' "$pawl" checkpoint load last --timeout 4
complained 'LOST'
cp -r last broken
set -- broken/*/*.pawl
truncate -s -1 "$1"
expect 1 "$pawl" checkpoint load broken --timeout 4 --lose-data
complained "${1#broken/}"
expect 0 "$pawl" status $patience --json
said '"waiting":[1-9]'
expect 0 "$pawl" checkpoint load last $patience --lose-data
said 'loaded last/checkpoint-000001'
complained 'gave up node 1, which is down'
expect 0 "$pawl" get $patience test/dense --limit 0
grep -q '^17 *34 *3' out || fail "key 17 is not what it was: $(grep '^17 ' out)"
[ "$(wc -l <out)" -ge 20000 ] || fail "only $(wc -l <out) rows are back"

# --- from time to time ----------------------------------------------------------------------------------------------------------

kill_all
start manager "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0 --checkpoint-dir "$work/auto" \
  --checkpoint-every 0.3 --checkpoint-keep 2
PAWL_ADDRESS=$(address_of manager)
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/dense --create --type f32 --size 10 1=1
has_tenth() { ls auto | grep -q 'auto-00001'; }
eventually has_tenth || fail "no checkpoints come by themselves: $(ls auto)"
[ "$("$pawl" checkpoint list auto --json | wc -l)" -le 3 ] || fail "too many are kept: $(ls auto)"
[ "$(ls auto | grep -v -c auto-)" -eq 0 ] || fail "they have other names: $(ls auto)"

# Those that hold only what has changed need one another: every second one is whole, so that older ones can go.
kill_all
start manager "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0 --checkpoint-dir "$work/rows" \
  --checkpoint-every 0.2 --checkpoint-keep 2 --checkpoint-incremental
PAWL_ADDRESS=$(address_of manager)
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/dense --create --type f32 --size 10 1=1
has_tenth() { ls rows | grep -q 'auto-00001'; }
eventually has_tenth || fail "no checkpoints come by themselves: $(ls rows)"
[ "$("$pawl" checkpoint list rows --json | wc -l)" -le 4 ] || fail "too many are kept: $(ls rows)"
kill_all
expect 0 "$pawl" checkpoint list rows --json
grep -v '"base": *null' out | grep -q base || fail "none is based on another: $(cat out)"
newest=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' out | tail -n 1)
expect 0 "$pawl" checkpoint verify "rows/$newest"
