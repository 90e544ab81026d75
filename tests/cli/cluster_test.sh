#!/bin/sh
# A cluster of three processes, started by hand: who is let in, what is seen of it, and that a server that is told to
# stop takes nothing with it.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# fetch URL: the status line's code and the body, by curl. A role hangs up on a request that takes 5 s, which happens
# on a machine that stands still; then once more.
fetch() {
  tries=20
  until curl --silent --show-error --max-time 100 --output body --write-out '%{http_code}' "$1" >code; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || break
  done
  cat code
}

page_of() { sed -n 's,.*\(http://[^ ]*\)metrics.*,\1,p' "$1.log"; }

command -v curl >/dev/null || {
  echo 'there is no curl' >&2
  exit 77
}

# --- keys: the cluster's own, a reader's, one for a space, and a stranger's ---

"$pawl" key new own.key >out
"$pawl" key new --read-only reader.key >out
"$pawl" key new --space ads ads.key >out
"$pawl" key new stranger.key >out
(umask 077 && cat own.key reader.key ads.key >cluster.key)
expect 0 "$pawl" key show cluster.key
said 'accepted, read-only$'
said 'accepted, space=ads$'

# --- starting ---

start manager "$pawl" manager --listen 127.0.0.1:0 --http 127.0.0.1:0 --key-file cluster.key --first-servers 2 --data none
address=$(address_of manager)
manager=$started
page=$(page_of manager)
[ "$(fetch "${page}healthz")" = 503 ] || fail "a manager without servers is well: $(cat body)"

expect 1 "$pawl" server --join "$address" --http none --join-timeout 200 --key-file stranger.key
complained 'does not accept our key'
complained '--key-file'
expect 1 "$pawl" server --join "$address" --http none --key-file reader.key
complained 'the first key has limits'
expect 1 "$pawl" server --join "$address" --http none --join-timeout 1
complained 'pawl server: '
gives_up "no manager answers at 127.0.0.1:1; start one with 'pawl manager'" \
  "$pawl" server --join 127.0.0.1:1 --http none --join-timeout 0.5 --key-file cluster.key
expect 1 "$pawl" status $patience --cluster "$address" --key-file stranger.key
complained 'does not accept the key'
gives_up 'no manager answers' "$pawl" status --cluster 127.0.0.1:1 --timeout 0.5

start first "$pawl" server --join "$address" --key-file cluster.key --shards 2
first=$started
start second "$pawl" server --join "$address" --key-file cluster.key --memory 1G
second=$started
eventually sh -c "curl --silent --max-time 5 '${page}healthz' | grep -q ok" || fail 'the manager does not get well'

export PAWL_ADDRESS="$address" PAWL_KEY_FILE="$work/own.key"

# --- putting and getting ---

expect 1 "$pawl" get $patience ads/w 1
complained 'vector ads/w not found'
expect 1 "$pawl" put $patience ads/w 1=2
complained '--create'
expect 0 "$pawl" put $patience ads/w --create --size 1000 --width 2 0=1,-2 999=0.5,1e-3
said 'added 2 rows of ads/w'
expect 0 "$pawl" put $patience ads/w 0=1,0
expect 0 "$pawl" get $patience ads/w 999,0,5
printf '0 2 -2\n5 0 0\n999 0.5 0.001\n' | cmp -s - out || fail "other values: $(cat out)"
expect 0 "$pawl" get $patience ads/w 998:
[ "$(wc -l <out)" -eq 2 ] || fail "not two keys: $(cat out)"
expect 0 "$pawl" get $patience ads/w 0 --json
said '^{"key":"0","values":\[2,-2\]}$'
expect 1 "$pawl" put $patience ads/w 1000=1,1
complained 'keys 0 to 999'
expect 1 "$pawl" put $patience ads/w 1=1
complained 'too few'
expect 1 "$pawl" put $patience ads/w 1=1,2,3
complained 'too many'
expect 1 "$pawl" put $patience ads/w 1=1,x
complained 'not a number'
expect 1 "$pawl" put $patience ads/w 1=1,1 1=2,2
complained 'twice'
expect 1 "$pawl" put $patience ads/w --create --size 10 1=1
complained 'with other options'

awk 'BEGIN { for (i = 0; i < 5000; i++) print (i * 7919 + 1) % 1000003, i }' >rows
expect 0 "$pawl" put $patience log/ids --create --type u64 --function assign --file rows
said 'assigned 5000 rows'
expect 0 "$pawl" get $patience log/ids --limit 0
sort -n out >seen
sort -n rows | cmp -s - seen || fail 'what was put is not what is got'
expect 0 "$pawl" get $patience log/ids --limit 10
[ "$(wc -l <out)" -eq 10 ] || fail 'the limit is not kept'
complained '--limit'
expect 0 "$pawl" get $patience log/ids 5:100
[ "$(wc -l <out)" -eq "$(awk '$1 >= 5 && $1 < 100' rows | wc -l)" ] || fail 'not the keys of the range'
expect 0 "$pawl" get $patience --list
said '^ads/w  *f32  *2  *1000 add  *ordered  *dense'
said '^log/ids  *u64  *1  *64 bits assign  *mixed  *sparse'
expect 0 "$pawl" get $patience --list log
[ "$(grep -c / out)" -eq 1 ] || fail "not one vector of the space: $(cat out)"

# --- rights ---

expect 0 "$pawl" get $patience ads/w 0 --key-file reader.key
expect 1 "$pawl" put $patience ads/w 0=1,1 --key-file reader.key
complained 'does not permit'
expect 0 "$pawl" put $patience ads/w 1=1,1 --key-file ads.key
expect 1 "$pawl" get $patience log/ids 1 --key-file ads.key
expect 1 "$pawl" put $patience log/ids 1=1 --key-file ads.key
expect 1 "$pawl" put $patience log/new --create 1=1 --key-file ads.key
complained 'does not permit'
expect 0 "$pawl" get $patience --list --key-file ads.key
if grep -q log/ out; then fail 'a key of one space lists another'; fi
expect 0 "$pawl" get $patience ads/w 0
said '^0 2 -2$'

# --- looking ---

expect 0 "$pawl" status $patience
said 'ready'
said '2 server processes with 3 shards'
said '^log/ids '
[ "$(grep -c ' up ' out)" -eq 3 ] || fail "not three shards are up: $(cat out)"
expect 0 "$pawl" status $patience --json
said '^{.*"ready":true'
[ "$(fetch "${page}metrics")" = 200 ] || fail 'no metrics'
grep -q '^pawl_nodes{state="up"} 3$' body || fail "not three nodes: $(cat body)"
first_page=$(page_of first)
[ "$(fetch "${first_page}healthz")" = 200 ] || fail "the first server is not well: $(cat body)"
eventually sh -c "curl --silent --max-time 5 '${first_page}metrics' | grep -q '^pawl_vector_rows{shard=\"1\",vector=\"log/ids\"} [1-9]'" ||
  fail 'no rows of the second shard'
[ "$(fetch "$(page_of second)metrics")" = 200 ] || fail 'no metrics'
grep -q '^pawl_shard_bytes_max{shard="0"} 805306368$' body || fail 'the cap is not there'
[ "$(fetch "${first_page}nothing")" = 404 ] || fail 'a page that is not there'

# --- the second server goes, with all it holds handed over ---

kill -TERM "$second"
eventually is_gone "$second" || fail 'the server does not end'
code=0
wait "$second" || code=$?
[ "$code" -eq 0 ] || fail "the server ends with $code"
expect 0 "$pawl" get $patience log/ids --limit 0
sort -n out >seen
sort -n rows | cmp -s - seen || fail 'values were lost with the server'
expect 0 "$pawl" get $patience ads/w 0,1,999
printf '0 2 -2\n1 1 1\n999 0.5 0.001\n' | cmp -s - out || fail "other values: $(cat out)"
expect 0 "$pawl" status $patience
said '1 server processes with 2 shards'

# --- a process whose parent is gone goes too ---

cat >parent.sh <<END
#!/bin/sh
"$pawl" server --join "$address" --http none --key-file cluster.key --parent \$\$ --ready-fd 9 9>child.ready >child.log 2>&1 &
echo \$! >child.pid
read -r wait
END
chmod +x parent.sh
mkfifo hold
: >child.ready
./parent.sh <hold &
parent=$!
pids="$pids $parent"
exec 8>hold
eventually grep -q '^ready' child.ready || fail 'the child is not ready'
child=$(cat child.pid)
pids="$pids $child"
exec 8>&-
eventually is_gone "$child" || fail 'the child outlives its parent'

# --- the end: the last server has nobody to hand over to, a second signal ends it ---

kill -TERM "$first"
eventually grep -q 'handing keys over' first.log || fail 'the last server does not say what it does'
kill -TERM "$first"
code=0
wait "$first" || code=$?
[ "$code" -eq 1 ] || fail "the last server ends with $code"
grep -q 'before all keys were handed over' first.log || fail "it is not said that keys are lost: $(cat first.log)"
kill -TERM "$manager"
code=0
wait "$manager" || code=$?
[ "$code" -eq 0 ] || fail "the manager ends with $code"
