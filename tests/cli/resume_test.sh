#!/bin/sh
# --resume goes on with the same options and the same data, and says what differs if they are not.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) { s = 0; line = ""
  for (j = 1; j <= 20; j++) if (rand() < 0.3) { line = line " " j ":1"; s += j % 2 ? 1 : -1 }
  print (s + rand() - 0.5 > 0 ? "1" : "2") line } }' >train.svm
cp -p train.svm saved.svm

run() { # EXIT NAME ARGUMENT…
  code=$1
  name=$2
  shift 2
  expect "$code" "$pawl" train logistic train.svm --l2 2 -o "$name.model" --checkpoint "$name.saved" --checkpoint-every 0.001 --tolerance 1e-15 --method blocks "$@"
}
run 0 first --rounds 4 --json
[ "$(figure iterations)" -eq 4 ] || fail "4 rounds, not: $(cat out)"

# Rounds of the run before are not this one's.
run 0 first --rounds 3 --resume --json
[ "$(figure iterations)" -eq 3 ] || fail "3 rounds, not: $(cat out)"
said '"resumed":4'
complained 'resuming from round 4'
run 0 first --rounds 1 --resume
said 'after 1 round, and 7 before --resume'

# refused TEXT ARGUMENT…: resuming is refused; the checkpoint stays.
refused() {
  text=$1
  shift
  run 1 first --resume "$@"
  complained "$text"
}
refused 'other options: --no-bias was off and is now on' --no-bias
refused '\-\-l2 was 2 and is now 3' --l2 3
refused '\-\-l1 was 0 and is now 1' --l1 1
refused '\-\-class-weight was 1 for the lower label and 1 for the higher and is now 1 for the lower label and 5 for the higher' --class-weight 2=5
refused '\-\-unit-rows was off and is now on' --unit-rows
refused '\-\-binary was off' --binary
refused '\-\-method was blocks and is now subgradient' --method subgradient

# Labels that are flipped: as many bytes, rows and features as before.
sed 's/^1/x/; s/^2/1/; s/^x/2/' saved.svm >train.svm
refused 'the data has changed since the checkpoint was written: .*/train.svm was modified since'
touch -r saved.svm train.svm # with the old time, too
refused 'the rows differ, although names, sizes and times of the files are the same'
cat saved.svm saved.svm >train.svm
refused 'train.svm had [0-9]* bytes and now has [0-9]*'
cp saved.svm train.svm # the same rows, written anew
run 0 first --rounds 1 --resume

# What may differ: how many rounds, workers, how close.
run 0 first --rounds 1 --resume --workers 1 --tolerance 1e-3 --seed 9

# Methods that stream read the data only if a file seems to have changed.
run 0 second --method ftrl --passes 2
run 0 second --method ftrl --passes 1 --resume --json
[ "$(figure iterations)" -eq 1 ] || fail "one pass, not: $(cat out)"
run 1 second --method ftrl --rate 0.7 --resume
complained '\-\-rate was 0.1 and is now 0.7'
touch train.svm
run 0 second --method ftrl --passes 1 --resume
complained 'reading the data once, to check that it has not changed'
sed 's/^1/x/; s/^2/1/; s/^x/2/' saved.svm >train.svm
run 1 second --method ftrl --passes 1 --resume
complained 'train.svm was modified since'

# A run that could write no checkpoint has a model, warns once, says so at the end, and fails.
mkdir -p full.saved/train.json
unsaved='cannot write a checkpoint to .*.saved: .*/train.json: Is a directory'
run 1 full --rounds 5
[ "$(grep -c "$unsaved; training goes on without a new checkpoint" err)" -eq 1 ] || fail "not one warning: $(cat err)"
complained "$unsaved; the model was saved to full.model, but --resume cannot go on from it"
[ -s full.model ] || fail 'no model was written'

# The same if only later ones could not be written; --quiet says no more than that.
rm -f later.saved/train.json
"$pawl" train logistic train.svm --l2 2 -o later.model --checkpoint later.saved --checkpoint-every 0.001 --tolerance 1e-15 \
  --method subgradient --rounds 100000000 --quiet >later.out 2>later.err &
trainer=$!
pids="$pids $trainer"
eventually test -s later.saved/train.json || fail "no checkpoint: $(cat later.err)"
until { rm -f later.saved/train.json && mkdir later.saved/train.json; } 2>/dev/null; do kill -0 "$trainer" || break; done
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
[ "$code" -eq 1 ] || fail "a run without its last checkpoint exits with $code: $(cat later.err)"
grep -q "$unsaved; the model was saved to later.model, but --resume cannot go on from it" later.err || fail "no reason: $(cat later.err)"
[ ! -s later.out ] && [ "$(wc -l <later.err)" -le 2 ] || fail "quiet is not quiet: $(cat later.out later.err)"

# Topics.
awk 'BEGIN { srand(3); for (i = 0; i < 60; i++) print "3 " int(rand() * 9) ":1 1" int(rand() * 9) ":2 2" int(rand() * 9) ":1" }' >docs.ldac
cp -p docs.ldac saved.ldac
lda() { # EXIT ARGUMENT…
  code=$1
  shift
  expect "$code" "$pawl" train lda docs.ldac --topics 3 --dir topics -o topics.model "$@"
}
lda 0 --sweeps 3
lda 0 --sweeps 5 --resume --json
said '"sweeps":5'
lda 1 --sweeps 7 --resume --alpha 0.5
complained 'other options: --alpha was 0.1 and is now 0.5'
lda 1 --sweeps 7 --resume --topics 4
complained '\-\-topics was 3 and is now 4'
sed 's/ 1\([0-9]\):2/ 1\1:3/' saved.ldac >docs.ldac # other counts, as many bytes
lda 1 --sweeps 7 --resume
complained 'the data has changed since the run in .*topics began: .*/docs.ldac was modified since'
cp saved.ldac docs.ldac
lda 0 --sweeps 7 --resume --json
complained 'reading the documents once'
said '"sweeps":7'
