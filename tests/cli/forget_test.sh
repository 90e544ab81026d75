#!/bin/sh
# A server that is dead: what only it had waits for it, until an operator gives it up.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
always='--http none'

is_ready() { "$pawl" status --timeout 1 | grep -q ': ready'; }

# --- three servers, one copy of everything ---

start manager "$pawl" manager --listen 127.0.0.1:0 --first-servers 3 --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
for name in first second third; do
  start "$name" "$pawl" server --join "$PAWL_ADDRESS"
done
third=$started
dead=$(address_of third)
eventually is_ready || fail 'the cluster is not ready'
# shellcheck disable=SC2046
expect 0 "$pawl" put a/w --create --size 1000 $(seq -f %.0f=7 0 999)
expect 1 "$pawl" server forget "$dead"
complained 'is not down'
expect 1 "$pawl" server forget 77
complained 'server 77 not found'
expect 2 "$pawl" server forget

# --- one is dead, and not yet given up ---

kill -KILL "$third"
waits() { "$pawl" status | grep -q '8 arcs wait for a server that is down'; }
eventually waits || fail 'nobody waits'
expect 0 "$pawl" status --json
said '"waiting":8,'
said '"whole":false'
expect 1 "$pawl" server forget "$dead"
complained 'only copy of 8 arcs (33.3 % of all keys)'
complained 'LOST'
expect 0 "$pawl" status --json
said '"waiting":8,'

# --- given up ---

expect 0 "$pawl" server forget "$dead" --lose-data
said 'it had the only copy of 8 arcs (33.3 % of all keys)'
grep -q 'error manager data.lost begin=' manager.log || fail 'the manager does not say it aloud'
eventually is_ready || fail 'the cluster is not ready'
expect 1 "$pawl" server forget "$dead" --lose-data
complained 'server .* not found'
expect 0 "$pawl" get a/w 0:1000 --limit 0
kept=$(grep -c ' 7$' out) || true
lost=$(grep -c ' 0$' out) || true
[ "$kept" -gt 600 ] || fail "kept $kept"
[ "$lost" -gt 300 ] || fail "lost $lost"
[ $((kept + lost)) -eq 1000 ] || fail "kept $kept, lost $lost"
# shellcheck disable=SC2046
expect 0 "$pawl" put a/w $(seq -f %.0f=1 0 999)
expect 0 "$pawl" get a/w 0:1000 --limit 0
[ "$(grep -c ' 8$' out)" -eq "$kept" ] || fail 'what was kept does not go on'
[ "$(grep -c ' 1$' out)" -eq "$lost" ] || fail 'what was lost does not begin anew'
expect 0 "$pawl" status --json
said '"lost":'
