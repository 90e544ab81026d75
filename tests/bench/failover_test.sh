#!/bin/sh
# `pawl-bench failover` runs to its end and prints the line that is promised; no figure is judged but what was lost. And the
# two commands that it is made of, by hand.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}
storm=${PAWL_STORM:?the path of pawl-storm}

# --- a short run ---

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'
mkdir kept
expect 0 "$bench" failover --servers 2 --workers 2 --kills 1 --mode pause --seed 7 --keep kept --json
line="^{\"bench\":\"failover\",\"mode\":\"pause\",\"servers\":2,\"shards\":1,\"workers\":2,\"replicas\":null,\"kills\":1"
line="$line,\"gigabytes\":0.0,\"transport\":\"auto\",\"seed\":7,\"p50_ms\":$number,\"p99_ms\":$number,\"max_ms\":$number"
line="$line,\"quiet_ms\":$number,\"whole_ms\":$number,\"pushes_per_s\":$number,\"acked\":[1-9][0-9]*,\"open\":0,\"unknown\":0,\"lost\":0"
line="$line,\"double\":0,\"stale\":0,\"views\":[0-9]*,\"machine\":{.*}}\$"
said "$line"
[ -s kept/0.journal ] || fail 'the journals are not kept'
[ -e kept/server0.log ] || fail 'the logs are not kept'

for wrong in '--mode shoot' '--servers 0' '--kills none' '--kills 0' '--gigabytes -1' '--replicas 4' '--seed -1' word; do
  # shellcheck disable=SC2086
  expect 2 "$bench" failover $wrong
done
expect 1 "$bench" failover --gigabytes 9999 --servers 64
complained 'GB are free'

# --- by hand: a worker, its journal, and what is found ---

start manager "$pawl" manager --listen 127.0.0.1:0 --http none
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$storm" work --worker 0 --journal honest --pushes 500 --timeout 200
said '500 pushes'
expect 1 "$storm" work --worker 0 --journal honest --pushes 1
complained 'exists already'
expect 0 "$storm" work --worker 1 --journal early --pushes 500 --plant early
expect 0 "$storm" verify honest
said '500 pushes, 500 acknowledged, 0 open, 0 unknown: 0 lost, 0 double'
expect 1 "$storm" verify honest early
said ' [1-9][0-9]* lost, 0 double'
said 'of worker 1: 1 lost: push [1-5]00$'
expect 1 "$storm" verify --json early
said '"acked":500,"open":0,"unknown":0,"lost":[1-9]'
expect 1 "$storm" verify honest honest
complained 'honest: exists already'
expect 1 "$storm" verify nothing
complained 'nothing: not found'
head -c 300 honest >damaged
printf 'x' | dd of=damaged bs=1 seek=70 conv=notrunc 2>dd.log
expect 1 "$storm" verify damaged
complained 'damaged: data is damaged'
expect 2 "$storm" verify
expect 2 "$storm" work --journal other
expect 2 "$storm" work --worker 1024 --journal other
expect 2 "$storm" work --worker 1 --journal other --plant weeds
