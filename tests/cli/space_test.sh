#!/bin/sh
# A quota of memory for a space: set with a command, kept over a restart of the manager, seen and taken back.
# labels: nosan
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --data "$work/log" --replicas 1
manager=$started
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server.a "$pawl" server --join "$PAWL_ADDRESS" --http none
start server.b "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience ads/w --create --type i64 --layout sparse 1=7
expect 0 "$pawl" put $patience news/w --create --type i64 --layout sparse 1=7

expect 0 "$pawl" space list $patience
said 'ads .* 1 .* - .* -'
expect 2 "$pawl" space quota
expect 2 "$pawl" space quota ads --memory lots
complained 'expected a size'
expect 1 "$pawl" space quota $patience ads/w --memory 1M
complained 'not a space'
expect 1 "$pawl" space quota $patience none
complained 'neither vectors nor a quota'
expect 0 "$pawl" space quota $patience ads --memory 1M
said 'may use 1048576 bytes'
expect 0 "$pawl" space quota $patience ads --json
said '"memory": *1048576'

awk 'BEGIN { for (i = 0; i < 200000; i++) print i * 977, 1 }' >many
fills() { ! "$pawl" put $patience ads/w --file many >out 2>err && grep -q 'memory quota' err; }
eventually fills || fail "nothing was refused: $("$pawl" space list)"
expect 0 "$pawl" put $patience news/w --file many
expect 1 "$pawl" put $patience ads/dense --create --type f64 --size 1000000 --layout dense 1=1
complained 'memory quota'

# Killed, and started again on its log.
kill -KILL "$manager"
eventually is_gone "$manager"
start manager "$pawl" manager --listen "$PAWL_ADDRESS" --http none --data "$work/log" --replicas 1
expect 0 "$pawl" space list $patience ads
said 'ads .* 1048576'
expect 1 "$pawl" put $patience ads/w --file many
complained 'memory quota'

expect 0 "$pawl" space quota $patience ads --memory none
said 'no longer has a quota'
expect 0 "$pawl" put $patience ads/w --file many
