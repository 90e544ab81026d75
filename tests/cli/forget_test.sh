#!/bin/sh
# A server that is dead: what only it had waits for it, until an operator gives it up.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
always='--http none'

is_ready() { "$pawl" status $patience | grep -q ': ready'; }

# --- three servers, one copy of everything ---

start manager "$pawl" manager --listen 127.0.0.1:0 --first-servers 3 --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start first "$pawl" server --join "$PAWL_ADDRESS"
first=$started
start second "$pawl" server --join "$PAWL_ADDRESS"
second=$started
start third "$pawl" server --join "$PAWL_ADDRESS"
third=$started
dead=$(address_of third)
eventually is_ready || fail 'the cluster is not ready'
# shellcheck disable=SC2046
expect 0 "$pawl" put $patience a/w --create --size 1000 $(seq -f %.0f=7 0 999)
expect 1 "$pawl" server forget $patience "$dead"
complained 'is not down'
expect 1 "$pawl" server forget $patience 77
complained 'server 77 not found'
expect 2 "$pawl" server forget

# --- one is dead, and not yet given up ---

kill -KILL "$third"
waits() { "$pawl" status $patience | grep -q '8 arcs wait for a server that is down'; }
eventually waits || fail 'nobody waits'
expect 0 "$pawl" status $patience --json
said '"waiting":8,'
said '"whole":false'
expect 1 "$pawl" server forget $patience "$dead"
complained 'only copy of 8 arcs (33.3 % of all keys)'
complained 'LOST'
expect 0 "$pawl" status $patience --json
said '"waiting":8,'

# --- given up ---

expect 0 "$pawl" server forget $patience "$dead" --lose-data
said 'it had the only copy of 8 arcs (33.3 % of all keys)'
grep -q 'error manager data.lost begin=' manager.log || fail 'the manager does not say it aloud'
eventually is_ready || fail 'the cluster is not ready'
expect 1 "$pawl" server forget $patience "$dead" --lose-data
complained 'server .* not found'
expect 0 "$pawl" get $patience a/w 0:1000 --limit 0
kept=$(grep -c ' 7$' out) || true
lost=$(grep -c ' 0$' out) || true
[ "$kept" -gt 600 ] || fail "kept $kept"
[ "$lost" -gt 300 ] || fail "lost $lost"
[ $((kept + lost)) -eq 1000 ] || fail "kept $kept, lost $lost"
# shellcheck disable=SC2046
expect 0 "$pawl" put $patience a/w $(seq -f %.0f=1 0 999)
expect 0 "$pawl" get $patience a/w 0:1000 --limit 0
[ "$(grep -c ' 8$' out)" -eq "$kept" ] || fail 'what was kept does not go on'
[ "$(grep -c ' 1$' out)" -eq "$lost" ] || fail 'what was lost does not begin anew'
expect 0 "$pawl" status $patience --json
said '"lost":'

# --- most servers are silent: the manager suspects its own network, and an operator who knows better need not wait ---
# After two minutes it would take them for dead.

start fourth "$pawl" server --join "$PAWL_ADDRESS"
are_three() { "$pawl" status $patience --json | grep -q '"whole":true.*"processes_up":3,'; }
eventually are_three || fail "the fourth server has no part: $("$pawl" status)"
expect 0 "$pawl" get $patience a/w 0:1000 --limit 0
sort out >before
kill -STOP "$first" "$second"
names_both() { "$pawl" status $patience | grep -q 'arcs wait for .*: node [0-9]*, [0-9]*$'; }
eventually names_both || fail "the silent servers are not named: $("$pawl" status)"
expect 1 "$pawl" server forget $patience "$(address_of fourth)" --lose-data
complained 'is not down'
expect 1 "$pawl" server forget $patience "$(address_of first)"
complained 'LOST'
eventually "$pawl" server forget "$(address_of first)" --lose-data || fail 'the silent server is not given up'
kill -CONT "$second"
eventually is_ready || fail "the cluster is not ready: $("$pawl" status)"
expect 0 "$pawl" get $patience a/w 0:1000 --limit 0
sort out | join before - >both
[ "$(wc -l <both)" -eq 1000 ] || fail "not all keys are there: $(cat out)"
[ "$(awk '$3 == 0' both | wc -l)" -gt 100 ] || fail 'nothing is lost with the first server'
[ "$(awk '$3 == $2' both | wc -l)" -gt 300 ] || fail 'more is lost than the first server had'
[ "$(awk '$3 != $2 && $3 != 0' both | wc -l)" -eq 0 ] || fail "other values: $(cat both)"
kill -CONT "$first" # it is told, and comes back with nothing
eventually are_three || fail "the first server has no part again: $("$pawl" status)"

# --- a server that cannot hand its keys over in time is lost like one that was killed ---

start alone "$pawl" manager --listen 127.0.0.1:0 --replicas 0
PAWL_ADDRESS=$(address_of alone)
start short "$pawl" server --join "$PAWL_ADDRESS" --drain-timeout 0.2
eventually is_ready || fail 'the cluster of one server is not ready'
kill -TERM "$started"
code=0
wait "$started" || code=$?
[ "$code" -eq 1 ] || fail "the server ends with $code"
grep -q 'for at most 0.2 s' short.log || fail "it has another limit: $(cat short.log)"
grep -q 'before all keys were handed over' short.log || fail "it does not say what is lost: $(cat short.log)"
waits_all() { "$pawl" status $patience --json | grep -q '"processes_up":0,' && "$pawl" status $patience | grep -q 'arcs wait for .*: node 1$'; }
eventually waits_all || fail "nobody waits for it: $("$pawl" status)"
