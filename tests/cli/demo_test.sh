#!/bin/sh
# What `make demo` shows: a model is trained while a server is killed, and is as good as without.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

mkdir temporary
TMPDIR=$work/temporary
export TMPDIR

# figure NAME: of the object in out.
figure() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" out | head -n 1; }

expect 0 "$pawl" demo --data "$PAWL_SOURCE/examples/data"
said 'kill -9 of a server, process [0-9]'
said 'pawl train said: a server was lost'
said ': nothing was lost'
said '^  accuracy  *[0-9.]* % of [0-9]* other sentences (guessing: [0-9.]* %)'
said '^  documentation  *[a-z]'
said '^  comments  *[a-z]'
said ' predict words.model '
if grep -q "$(printf '\033')" out err; then fail 'colours where there is no terminal'; fi

# A cluster that others use is left alone.
expect 0 env PAWL_ADDRESS=127.0.0.1:1 "$pawl" demo --json --data "$PAWL_SOURCE/examples/data"
[ "$(wc -l <out | tr -d ' ')" -eq 1 ] || fail "one object, not: $(cat out)"
awk "BEGIN { exit !($(figure accuracy) > $(figure guessing) + 0.1) }" ||
  fail "accuracy $(figure accuracy), and guessing $(figure guessing)"
awk "BEGIN { exit !($(figure killed_after) >= 8 && $(figure rounds) > $(figure killed_after)) }" ||
  fail "killed after $(figure killed_after) of $(figure rounds) rounds"
said '"same":true'

# Where there is no data it says what to do.
mkdir elsewhere
expect 1 "$pawl" demo --data elsewhere
complained 'examples/data of pawl.s sources; name that folder with --data FOLDER'
[ ! -s out ] || fail "it prints: $(cat out)"

# An installation has the data in share/pawl, and finds it from anywhere.
mkdir -p installed/bin installed/share
cp "$pawl" installed/bin/pawl
cp -r "$PAWL_SOURCE/examples/data" installed/share/pawl
expect 0 env PAWL_COMMAND="$work/installed/bin/pawl" installed/bin/pawl demo
said 'installed/bin/pawl train logistic installed/share/pawl/words.train.svm.zst'

# What is interrupted leaves nothing behind, either.
"$pawl" demo --data "$PAWL_SOURCE/examples/data" >cut.log 2>&1 &
demo=$!
pids="$pids $demo"
eventually sh -c "ls temporary/pawl-demo-*/log.jsonl" || fail 'training does not begin'
kill -INT "$demo" 2>/dev/null || true
code=0
wait "$demo" || code=$?
[ "$code" -eq 130 ] || [ "$code" -eq 0 ] || fail "an interrupted demo ends with $code"
[ -z "$(ls temporary)" ] || fail "it leaves behind: $(ls temporary)"
