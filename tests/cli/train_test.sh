#!/bin/sh
# Training from the command line: on this machine, on a cluster, with what is shown, logged and written; good input and bad.
# cost: 30
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# rows SEED COUNT: rows of two classes that a line nearly tells apart, in 30 features of which 10 matter.
rows() {
  awk -v seed="$1" -v count="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; i++) {
      line = ""; score = 0
      for (j = 1; j <= 30; j++)
        if (rand() < 0.3) { line = line " " j ":1"; if (j <= 10) score += (j % 2 ? 1 : -1) }
      print (score + rand() - 0.5 > 0 ? "+1" : "-1") line
    }
  }'
}
rows 1 600 >train.svm
rows 2 200 >test.svm

# --- the first run --------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm
said '^  objective  *[0-9.]*$'
said '^  non-zeros  *[0-9]* of [0-9]* features$'
said '^  accuracy  *[0-9.]* % of [0-9]* rows$'
said '^  time  .* loading, .* training; workers waited [0-9.]* %$'
said '^  model  *train.model (choose another name with -o)$'
said '^next:  pawl predict train.model train.svm$'
[ -s train.model ] || fail 'there is no model'
if grep -q "$(printf '\033')" out err; then fail 'a progress line where there is no terminal'; fi

if command -v script >/dev/null; then # a terminal
  TERM=xterm timeout 400 script -qec "'$pawl' train logistic train.svm -o shown.model" shown.out </dev/null >/dev/null || fail 'a terminal'
  grep -q "$(printf '\033')\[K.*round [0-9]*  objective " shown.out || fail "no progress line: $(cat shown.out)"
  grep -q '^next: ' shown.out || fail 'no summary'
fi

expect 0 "$pawl" train logistic train.svm --valid test.svm --l1 1 -o sparse.model --workers 1 --json
[ "$(wc -l <out | tr -d ' ')" -eq 1 ] || fail "one line, not: $(cat out)"
for name in objective nnz seconds iterations accuracy wait_pct bytes_sent bytes_received model why rows features load_seconds \
  train_seconds workers_lost valid_loss valid_accuracy total_seconds; do
  said "\"$name\":"
done
said '"model":"sparse.model"'
[ -s sparse.model ] || fail 'there is no model'
if grep -q '"valid_loss":null' out; then fail "no validation loss: $(cat out)"; fi

expect 0 "$pawl" train svm train.svm --quiet -o svm.model
[ "$(cat out err | wc -c)" -eq 0 ] || fail "--quiet prints: $(cat out err)"
expect 0 "$pawl" train svm train.svm --loss squared-hinge --class-weight balanced --no-bias -o square.npy
[ -s square.npy ] || fail 'there is no .npy'
expect 0 "$pawl" train linear train.svm --l2 2 --model-format liblinear -q
[ -s train.liblinear ] || fail 'there is no LIBLINEAR model under the name of the data'

# --- labels that nothing tells ----------------------------------------------------------------------------------------------------

# Rows that have learned noise by heart have converged, but validation rows tell what that is worth.
rows 3 200 | awk 'BEGIN { srand(11) } { $1 = rand() < 0.5 ? "+1" : "-1"; print }' >chance.svm
rows 4 600 | awk 'BEGIN { srand(12) } { $1 = rand() < 0.5 ? "+1" : "-1"; print }' >chance.valid
for method in logistic svm 'svm --loss squared-hinge' linear; do
  # shellcheck disable=SC2086
  expect 3 "$pawl" train $method chance.svm --valid chance.valid -o chance.model
  said '^converged after '
  said '^  validation  .*; NO BETTER THAN GUESSING$'
  complained 'chance.model is NO BETTER THAN GUESSING on the validation rows: '
done
expect 3 "$pawl" train logistic chance.svm --valid chance.valid -o chance.model --json --quiet
said '"guessing":true'
complained 'it is right on [0-9.]* % of them, and the more frequent class on 5[0-9.]* %'
expect 3 "$pawl" train logistic chance.svm --valid chance.valid --l1 3,1 -o chance.model --quiet
complained 'chance.l1=1.model is NO BETTER THAN GUESSING'
expect 0 "$pawl" train logistic chance.svm -o chance.model # without them nothing tells

# A class that is rare is hardly ever the answer, and yet something was learned.
rare() { rows "$1" 2000 | awk '{ s = 0; for (i = 2; i <= NF; i++) if ($i + 0 <= 10) s += $i % 2 ? 1 : -1; $1 = s > 2 ? "+1" : "-1"; print }'; }
rare 5 >rare.svm
rare 6 >rare.valid
for method in logistic svm; do
  expect 0 "$pawl" train $method rare.svm --valid rare.valid -o rare.model --json
  said '"guessing":false'
done

# --- what is kept on the way ----------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --log run.jsonl --tensorboard board -o logged.model --json
iterations=$(figure iterations)
[ "$(wc -l <run.jsonl | tr -d ' ')" -eq "$iterations" ] || fail "$iterations rounds, and $(wc -l <run.jsonl) lines"
for name in round l1 l2 objective nnz valid_loss examples_per_s wait_pct bytes_sent workers slowest; do
  [ "$(grep -c "\"$name\":" run.jsonl)" -eq "$iterations" ] || fail "not every line has $name"
done
set -- board/events.out.tfevents.*
[ $# -eq 1 ] || fail 'no event file, or several'
grep -q 'brain.Event:2' "$1" || fail 'the event file names no version'
grep -q 'objective' "$1" || fail 'the event file has no objective'

# A log that cannot be written does not end the run, but the run has not done all that it should.
if [ -w /dev/full ]; then
  expect 1 "$pawl" train logistic train.svm --log /dev/full -o full.model
  complained 'stopped writing the log /dev/full'
  complained 'pawl train logistic: the log /dev/full is incomplete: No space left on device'
  [ -s full.model ] || fail 'no model was written'
fi

# --- a path -----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --l1 10,1,0.1 -o path.model --tensorboard boards
for value in 10 1 0.1; do
  [ -s "path.l1=$value.model" ] || fail "no model for $value"
  [ -d "boards/l1=$value" ] || fail "no run for $value"
  said "  path.l1=$value.model$"
done
said '^next:  pawl predict path.l1=0.1.model train.svm'
expect 0 "$pawl" train logistic train.svm --l1 1,300 --valid test.svm -o best.model
said '^  best  *best.l1=1.model, by its validation loss$'
said '^next:  pawl predict best.l1=1.model test.svm'
[ ! -e path.model ] || fail 'a model that nobody asked for'
expect 0 "$pawl" train logistic train.svm --l1 1 --l2 1,2 -o grid --json
said '"models":\[{.*"model":"grid.l2=1".*"model":"grid.l2=2"'

# --- what cannot be meant -----------------------------------------------------------------------------------------------------------

while read -r wrong; do
  # shellcheck disable=SC2086
  expect 2 "$pawl" train $wrong
  complained "try 'pawl train"
done <<'END'
logistic
forest train.svm
logistic train.svm --l1 -1
logistic train.svm --l1 1,,2
logistic train.svm --workers 0
logistic train.svm --workers 3:1
logistic train.svm --method bfgs
logistic train.svm --method dual
logistic train.svm --loss hinge
logistic train.svm --early-stop 3
logistic train.svm --servers 1 --replicas 1
logistic train.svm --cluster 127.0.0.1:1 --servers 2
logistic train.svm --class-weight heavy
linear train.svm --class-weight balanced
logistic train.svm --on-worker-loss panic
logistic train.svm --model-format onnx
logistic train.svm --format xml
logistic train.svm --checkpoint-every 0
logistic train.svm --hash-bits 99
END
expect 2 "$pawl" worker here
expect 2 "$pawl" worker --wait soon
expect 2 "$pawl" worker --ready-fd 987

# refused TEXT ARGUMENT…: exit code 1, said once, nothing on standard output, and an older model left as it was.
refused() {
  text=$1
  shift
  echo 'as it was' >kept.model
  expect 1 "$pawl" train logistic -o kept.model "$@"
  complained "$text"
  # The last words of a worker that ended before its report was read come besides.
  [ "$(grep -v '^worker [0-9]*: ' err | grep -c -e "$text")" -eq 1 ] || fail "'$*' is complained of more than once: $(cat err)"
  [ ! -s out ] || fail "'$*' fails and prints: $(cat out)"
  [ "$(cat kept.model)" = 'as it was' ] || fail "'$*' fails and changes the model"
}

: >empty.svm
printf '+1 1:1\n+1 2:1\n' >one.svm
printf '+1 1:1\n-1 2:nan\n' >nan.svm
printf '1 1:1\n2 2:1\n3 1:2\n' >three.svm
printf '+1 1:1\n-1 99999999999999999999:1\n' >id.svm
refused 'nowhere.svm' nowhere.svm
refused 'nowhere.svm' train.svm --valid nowhere.svm
refused 'empty.svm.*empty' empty.svm
refused 'no\*\.svm' 'no*.svm'
refused 'nowhere.model' train.svm --start nowhere.model
refused 'nan.svm:2:4: ' nan.svm
[ "$(grep -c '^worker 1: ' err)" -eq 0 ] || fail "the same is said by a worker and about it: $(cat err)"
refused 'id.svm:2:4: the feature id' id.svm
refused 'training needs two labels' one.svm
refused 'not of two classes' three.svm
printf '2 0:1 7:2\n1 3:1\n' >documents.ldac
printf '1\n9\n1\n1 9 1\n' >documents.uci
refused 'documents.ldac is ldac: documents without labels' documents.ldac
refused 'documents.uci is uci: documents without labels' documents.uci
refused 'three.svm is text: documents without labels' three.svm --format text
refused 'no row has the label 3; there are -1 and 1' train.svm --class-weight 3=2
refused 'only one' one.svm --class-weight balanced
refused 'cannot resume from .*kept.model.checkpoints' train.svm --resume
expect 1 "$pawl" train logistic train.svm -o nowhere/x.model
complained 'cannot write the model to nowhere/'
expect 1 "$pawl" train logistic train.svm -o .
complained 'it is a folder'

# Nothing wrong with these.
printf '+1 1:1\n-1 2:1\n' >two.svm
expect 0 "$pawl" train logistic two.svm --workers 5 -o two.model
said 'accuracy  *100.00 % of 2 rows'
printf '+1 1:1\n-1 2:1\n-1 2:nan\n' >bad.svm
expect 0 "$pawl" train logistic bad.svm --skip-bad 1 -o bad.model
said '^  skipped  *1 bad row'
printf '+1\n-1\n+1\n' >bare.svm
expect 0 "$pawl" train logistic bare.svm -o bare.model
said 'accuracy  *66.67 % of 3 rows'

# --- the same result, however it is come by -------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --l1 1 --workers 1 -o one.model --json
one=$(figure objective)
for workers in 2 3; do
  expect 0 "$pawl" train logistic train.svm --l1 1 --workers $workers -o several.model --json
  awk "BEGIN { d = $(figure objective) / $one - 1; exit !(d < 1e-9 && d > -1e-9) }" ||
    fail "$workers workers reach $(figure objective), one $one"
done
expect 0 "$pawl" predict several.model train.svm --json
awk "BEGIN { d = $(figure objective) / $one - 1; exit !(d < 1e-9 && d > -1e-9) }" ||
  fail "predicted $(figure objective), trained $one"
expect 0 "$pawl" predict several.model test.svm --json
awk "BEGIN { exit !($(figure accuracy) > 0.8) }" || fail "accuracy $(figure accuracy)"
expect 0 "$pawl" train logistic train.svm --l1 1 --start one.model -o again.model --json
awk "BEGIN { exit !($(figure objective) <= $one * 1.0000001) }" || fail "worse than where it began: $(figure objective)"
# What has not converged says so, with what to try. As many rounds as were asked for are no mistake; a model that is worse than none is.
expect 0 "$pawl" train logistic train.svm --method blocks --rounds 1 --tolerance 1e-9 -o short.model
said 'NOT converged'
said 'try  *more --rounds'
expect 0 "$pawl" train logistic train.svm --method blocks --rounds 1 --tolerance 1e-9 -o short.model --json
said '"converged":false'
expect 3 "$pawl" train linear train.svm --method sgd --rate 1e4 -o astray.model
said 'DIVERGED'
[ -s astray.model ] || fail 'the model of a run that diverged is not there'
expect 0 "$pawl" train logistic train.svm --l1 1 --workers 1:3 -o elastic.model --json
awk "BEGIN { d = $(figure objective) / $one - 1; exit !(d < 1e-9 && d > -1e-9) }" || fail "1:3 reaches $(figure objective)"
expect 0 "$pawl" train logistic train.svm --valid test.svm --early-stop 2 --tolerance 1e-12 --l2 0.001 -o early.model --json
said '"why":"\(early stop\|converged\)"'

# --- accidents ------------------------------------------------------------------------------------------------------------------------

long='train logistic train.svm --rounds 1000000 --tolerance 1e-15'

# A worker is killed: another takes its place.
set_out replaced --workers 2
kill -KILL "$(children $trainer worker | head -n 1)"
goes_on replaced.jsonl
eventually grep -q 'worker 1 .* ended: signal 9\|worker 2 .* ended: signal 9' replaced.log || fail 'the loss is not told'
eventually sh -c "tail -n 1 replaced.jsonl | grep -q '\"workers\":2'" || fail 'nobody takes its place'
kill -INT "$trainer"
ends 130
grep -q '^interrupted after' replaced.out || fail "what ended it is not said: $(cat replaced.out)"
grep -q 'saved to replaced.model' replaced.log || fail 'that the model is saved is not said'
[ -s replaced.model ] || fail 'there is no model'

# The others go on without it.
set_out continued --workers 2 --on-worker-loss continue
kill -KILL "$(children $trainer worker | head -n 1)"
eventually sh -c "tail -n 1 continued.jsonl | grep -q '\"workers\":1'" || fail 'two workers are left of one'
goes_on continued.jsonl
kill -TERM "$trainer"
ends 130

# It stops, and what there is is kept.
set_out stopped --workers 2 --on-worker-loss stop
kill -KILL "$(children $trainer worker | head -n 1)"
ends 1
[ -s stopped.model ] || fail 'there is no model'

# A server is killed.
set_out served --workers 2 --servers 2 --replicas 1
kill -KILL "$(children $trainer server | head -n 1)"
goes_on served.jsonl
eventually grep -q 'a server was lost' served.log || fail 'the loss is not told'
kill -INT "$trainer"
ends 130
[ -s served.model ] || fail 'there is no model'

# One without copies is killed: there is nothing to wait for.
set_out lost --workers 1
kill -KILL "$(children $trainer server | head -n 1)"
ends 1
grep -q 'no other server has a copy of its data.*--replicas 1' lost.log || fail 'what is lost is not said'

# Nothing stays behind when the scheduler is killed.
set_out murdered --workers 2
children $trainer worker >left
children $trainer server >>left
children $trainer manager >>left
[ "$(lines_of left)" -eq 4 ] || fail "two workers, a server and a manager, not: $(cat left)"
kill -KILL "$trainer"
ends 137
while read -r pid; do eventually is_gone "$pid" || fail "process $pid stays behind"; done <left

# What was killed is resumed, and the log goes on.
set_out resumed --workers 2 --checkpoint-every 0.2
eventually test -s resumed.model.checkpoints/train.json || fail 'there is no checkpoint'
kill -KILL "$trainer"
ends 137
[ ! -e resumed.model ] || fail 'a run that was killed has written a model'
before=$(lines_of resumed.jsonl)
expect 0 "$pawl" train logistic train.svm -o resumed.model --log resumed.jsonl --resume --rounds 3 --json
complained 'resuming from round [1-9]'
[ -s resumed.model ] || fail 'there is no model'
[ "$(lines_of resumed.jsonl)" -gt "$before" ] || fail 'the log does not go on'
expect 1 "$pawl" train logistic train.svm -o resumed.model --resume --l1 7
complained '\-\-l1 was 0 and is now 7'

# --- a cluster --------------------------------------------------------------------------------------------------------------------------

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --data none --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" train logistic train.svm $patience --workers 2 -o cluster.model --json
said '"model":"cluster.model"'
expect 1 "$pawl" worker $patience --wait 0.2
complained 'job train not found'

# Workers that come by themselves, early and late; and two jobs of one name.
"$pawl" worker $patience --job ads >early.log 2>&1 &
early=$!
pids="$pids $early"
set_out joined $patience --job ads --workers 0
grep -q "waiting for workers: pawl worker --cluster .* --job ads" joined.log || fail 'how to join is not said'
expect 1 "$pawl" train logistic train.svm $patience --job ads -o other.model
complained 'choose another name with --job'
"$pawl" worker $patience --job ads >late.log 2>&1 &
late=$!
pids="$pids $late"
eventually sh -c "tail -n 1 joined.jsonl | grep -q '\"workers\":2'" || fail 'who comes late is not let in'
kill -INT "$trainer"
ends 130
wait $early || fail "a worker fails at the end: $(cat early.log)"
wait $late || fail "a worker fails at the end: $(cat late.log)"
gives_up 'no manager answers at 127.0.0.1:1' \
  env PAWL_ADDRESS=127.0.0.1:1 "$pawl" train logistic train.svm --timeout 1
