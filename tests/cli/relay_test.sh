#!/bin/sh
# timeout: 600
#
# Relays as processes: who may be one, what is seen of them, and that a group that pushes through them loses nothing,
# whether a relay is killed or told to stop.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

"$pawl" key new own.key >out
"$pawl" key new --read-only reader.key >out
"$pawl" key new --space ads ads.key >out
(umask 077 && cat own.key reader.key ads.key >cluster.key)

expect 2 "$pawl" relay
complained 'no manager given'
expect 2 "$pawl" relay --join 127.0.0.1:1 --tree degree-1
complained "'degree-1'.*none, rack, binary, degree-N or near-N"
expect 2 "$pawl" relay --join 127.0.0.1:1 --tree auto.fixed
complained "'auto.fixed'.*auto, or none, rack"
expect 2 "$pawl" relay --join 127.0.0.1:1 --priority 10
complained "'10'.*a number from 1 to 9"
PAWL_PRIORITY=high expect 2 "$pawl" relay --join 127.0.0.1:1
complained "PAWL_PRIORITY is 'high'; it must be a number from 1 to 9"
gives_up "no manager answers at 127.0.0.1:1; start one with 'pawl manager'" \
  "$pawl" relay --join 127.0.0.1:1 --join-timeout 0.5
expect 1 "$pawl" relay --join 127.0.0.1:1 --key-file reader.key
complained 'the first key has limits, but a relay acts for others'
expect 1 "$pawl" relay --join 127.0.0.1:1 --key-file own.key --http 0.0.0.0:0
complained "cannot serve HTTP on 0.0.0.0:0: .*--http-token"

# --- a cluster ---

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --key-file cluster.key --first-servers 2 --data none
address=$(address_of manager)
for server in first second; do
  start $server "$pawl" server --join "$address" --http none --key-file cluster.key
done
export PAWL_ADDRESS="$address" PAWL_KEY_FILE="$work/own.key"

# What a member runs in: it is started again if the machine was too busy for it to reach the manager in time.
cat >patiently <<'END'
#!/bin/sh
log=$1
shift
until "$@" >"$log" 2>&1; do
  grep -q -e 'the manager at .* does not answer' -e 'no answer from the manager' -e 'no manager answers' -e 'is not a manager' \
    -e 'has no servers yet' "$log" || exit 1
done
END
chmod +x patiently

# members NAME TICKS [OPTION]: starts four members, in two racks.
members() {
  for number in 1 2 3 4; do
    rack=left
    [ $number -lt 3 ] || rack=right
    PAWL_RACK=$rack ./patiently "$1.$number.log" "$bench" relay --name "$1" --members 4 --ticks "$2" --size 64k ${3:+"$3"} --json &
    pids="$pids $!"
    eval "member$number=$!"
  done
}

# all_right NAME: every member ends with exit code 0, which it does only if every sum was right.
all_right() {
  for number in 1 2 3 4; do
    eval "wait \$member$number" || fail "member $number of $1 fails: $(cat "$1.$number.log")"
  done
}

# --- two relays that choose the tree: in one rack it is rack or none ---

for relay in left right; do
  start $relay "$pawl" relay --join "$address" --key-file cluster.key --host $relay --rack left --tree auto --json
  eval "auto_$relay=$started"
done
expect 0 "$pawl" status $patience
said '2 relays, tree rack'
said '^ *[0-9]* auto  *127.0.0.1:[0-9]*  *left  *left$'
rounds=0
until "$pawl" status $patience >out && grep -q '^pawl-relay/\.none ' out; do # they have measured one, and try the other
  rounds=$((rounds + 1))
  [ $rounds -le 200 ] || fail "the relays do not try a second tree: $(cat out)"
  members auto$rounds 100
  all_right auto$rounds
done
members last 100
all_right last
expect 0 "$pawl" status $patience
said '2 relays, tree \(rack\|none\)$'
for relay in left right; do
  eval "kill -TERM \$auto_$relay; wait \$auto_$relay" || fail "a relay that is told to stop fails: $(cat $relay.log)"
  grep -q '"applied": *[1-9]' $relay.log || fail "nothing went through the relay: $(cat $relay.log)"
  grep -q '"tree": *"\(rack\|none\)"' $relay.log || fail "the relay does not tell its tree: $(cat $relay.log)"
done

# --- a cluster with two relays ---

start left "$pawl" relay --join "$address" --key-file cluster.key --host one --rack left
one=$started
start right "$pawl" relay --join "$address" --key-file cluster.key --host two --rack right --json
two=$started
start odd "$pawl" relay --join "$address" --key-file cluster.key --host three --tree binary
eventually grep -q 'warning: the relay at .* has joined with --tree rack' odd.log || fail 'two trees, and no warning'
kill -TERM "$started"
eventually is_gone "$started"

is_calm() { "$pawl" status $patience >out && grep -q ' 0 clients$' out; }
eventually is_calm || fail "somebody is still there: $(cat out)"
said '^  2 relays, tree rack$'
said '^ *[0-9]* rack  *127.0.0.1:[0-9]*  *one  *left$'
expect 0 "$pawl" status $patience --json
said '"relays":\[{"id":[0-9]*,"tree":"rack","address":"tcp://127.0.0.1:[0-9]*","host":"one","rack":"left"},{'

# --- without faults; then a relay is killed, and the other one is told to stop ---

export PAWL_PRIORITY=8
members calm 40
all_right calm
members pulls 40 --pull
all_right pulls
unset PAWL_PRIORITY

# counts NAME VALUE: the page of the relay that is left has, before long, this figure.
counts() {
  eventually sh -c "curl --silent --max-time 5 '${page}metrics' | grep -q '^$1 $2\$'" ||
    fail "$1 is not $2: $(curl --silent --max-time 5 "${page}metrics")"
}

page=$(sed -n 's,.*\(http://[^ ]*\)metrics.*,\1,p' left.log)
[ -n "$page" ] || fail "the relay names no page: $(cat left.log)"
if command -v curl >/dev/null; then
  for name in pushes aggregates applied bytes_in bytes_out pulls reads; do
    counts "pawl_relay_${name}_total" '[1-9][0-9]*'
  done
  counts 'pawl_relay_tree{tree="rack"}' 1
  counts pawl_relay_priority 8
  counts pawl_relay_children 0
  eventually sh -c "curl --silent --max-time 5 '${page}healthz' | grep -q '^ok\$'" || fail 'the relay is not well'
fi
members harsh 400
eventually sh -c "'$pawl' status $patience | grep -q 'harsh/values'"
kill -KILL "$one"
start left "$pawl" relay --join "$address" --key-file cluster.key --host one --rack left --json
one=$started
kill -TERM "$two"
eventually is_gone "$two"
all_right harsh
wait "$two" || fail "a relay that is told to stop fails: $(cat right.log)"
grep -q '"applied": *[1-9]' right.log || fail "nothing went through the relay: $(cat right.log)"
grep -q '"pulls": *[1-9]' right.log || fail "no pull went through the relay: $(cat right.log)"
kill -TERM "$one"
wait "$one" || fail "a relay that is told to stop fails: $(cat left.log)"
