#!/bin/sh
# Training from the command line: on this machine, on a cluster, with what is shown, logged and written; good input and bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

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

# figure NAME: of the object in out.
figure() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" out | head -n 1; }

# --- the first run --------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm
said '^  objective  *[0-9.]*$'
said '^  non-zeros  *[0-9]* of [0-9]* features$'
said '^  accuracy  *[0-9.]* % of [0-9]* rows$'
said '^  time  .* loading, .* training; workers waited [0-9.]* %$'
said '^  model  *train.model (-o names another)$'
said '^next:  pawl predict train.model train.svm$'
[ -s train.model ] || fail 'there is no model'
if grep -q "$(printf '\033')" out err; then fail 'a progress line where there is no terminal'; fi

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
[ ! -s out ] && [ ! -s err ] || fail "--quiet prints: $(cat out err)"
expect 0 "$pawl" train svm train.svm --loss squared-hinge --class-weight balanced --no-bias -o square.npy
[ -s square.npy ] || fail 'there is no .npy'
expect 0 "$pawl" train linear train.svm --l2 2 --model-format liblinear -q
[ -s train.liblinear ] || fail 'there is no LIBLINEAR model under the name of the data'

# --- what is kept on the way ----------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --log run.jsonl --tensorboard board -o logged.model --json
iterations=$(figure iterations)
[ "$(wc -l <run.jsonl | tr -d ' ')" -eq "$iterations" ] || fail "$iterations rounds, and $(wc -l <run.jsonl) lines"
for name in round l1 l2 objective nnz valid_loss examples_per_s wait_pct bytes_sent workers slowest; do
  [ "$(grep -c "\"$name\":" run.jsonl)" -eq "$iterations" ] || fail "not every line has $name"
done
set -- board/events.out.tfevents.*
[ $# -eq 1 ] && [ -s "$1" ] || fail 'no event file'
grep -q 'brain.Event:2' "$1" || fail 'the event file names no version'
grep -q 'objective' "$1" || fail 'the event file has no objective'

# A log that cannot be written does not end the run.
if [ -w /dev/full ]; then
  expect 0 "$pawl" train logistic train.svm --log /dev/full -o full.model
  complained 'no more is written to the log /dev/full'
fi

# --- a path -----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --l1 10,1,0.1 -o path.model --tensorboard boards
for value in 10 1 0.1; do
  [ -s "path.l1=$value.model" ] || fail "no model for $value"
  [ -d "boards/l1=$value" ] || fail "no run for $value"
  said "  path.l1=$value.model$"
done
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
logistic train.svm --method newton
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

# refused TEXT ARGUMENT…: exit code 1, nothing on standard output, and an older model left as it was.
refused() {
  text=$1
  shift
  echo 'as it was' >kept.model
  expect 1 "$pawl" train logistic -o kept.model "$@"
  complained "$text"
  [ ! -s out ] || fail "'$*' fails and prints: $(cat out)"
  [ "$(cat kept.model)" = 'as it was' ] || fail "'$*' fails and changes the model"
}

: >empty.svm
printf '+1 1:1\n+1 2:1\n' >one.svm
printf '+1 1:1\n-1 2:nan\n' >nan.svm
printf '+1 1:1\n-1 99999999999999999999:1\n' >id.svm
refused 'nowhere.svm' nowhere.svm
refused 'nowhere.svm' train.svm --valid nowhere.svm
refused 'empty.svm.*empty' empty.svm
refused 'no\*\.svm' 'no*.svm'
refused 'nowhere.model' train.svm --start nowhere.model
refused 'no row has the label 3; there are -1 and 1' train.svm --class-weight 3=2
refused 'one only' one.svm --class-weight balanced
refused 'nothing to resume from in .*kept.model.checkpoints' train.svm --resume
expect 1 "$pawl" train logistic train.svm -o nowhere/x.model
complained 'cannot be written to nowhere/'
expect 1 "$pawl" train logistic train.svm -o .
complained 'which is a folder'
