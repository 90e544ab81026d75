#!/bin/sh
# Workers that share by reduce save their parameters. The whole job is killed and resumes: the model has the same bits as
# that of a run that was not killed. Files that are missing, damaged or of another run are refused or said; nobody's
# file is replaced or removed.
# timeout: 600
# cost: 20
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

python3 - <<'END'
import random, struct
random.seed(3)
with open('rows.svm', 'w') as file:
    for i in range(2000):
        x = {j: random.gauss(0, 1) for j in random.sample(range(1, 41), 8)}
        z = sum(v * (j % 3 - 1) for j, v in x.items()) + random.gauss(0, 0.5)
        print(1 if z > 0 else -1, *(f'{j}:{v:.4f}' for j, v in sorted(x.items())), file=file)
labels = bytes(random.randrange(4) for _ in range(120))
pixels = bytes(random.randrange(120) + (110 if at // 64 == label else 0) for label in labels for at in range(256))
open('images', 'wb').write(struct.pack('>4I', 0x803, 120, 16, 16) + pixels)
open('labels', 'wb').write(struct.pack('>2I', 0x801, 120) + labels)
END
svm='train svm rows.svm --no-bias --method sgd --minibatch 50 --schedule cosine --share reduce --graph ring --workers 3'
cnn='train cnn --model lenet images labels --batch 16 --rate 0.001 --workers 2 --share reduce --graph root'

# killed FOLDER TEST COMMAND…: kills the command and all its processes once TEST succeeds. If the command was faster, again.
killed() {
  folder=$1
  test=$2
  shift 2
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$folder" killed.model
    setsid "$pawl" "$@" -o killed.model --checkpoint "$folder" --checkpoint-every 0.001 >killed.out 2>killed.err &
    group=$!
    until eval "$test"; do
      kill -0 "$group" 2>/dev/null || break
      sleep 0.02
    done
    kill -9 "-$group" 2>/dev/null || true
    wait "$group" 2>/dev/null || true
    if [ ! -e killed.model ] && eval "$test"; then return 0; fi # else it was faster, or failed
  done
  fail "the run is never killed in time: $(cat killed.err)"
}

# wide KEY FILE: a hexadecimal number of the scheduler's file.
wide() { printf '%d' "0x$(sed -n "s/.*\"$1\": \"\([0-9a-f]*\)\".*/\1/p" "$2" | head -n 1)"; }

# --- linear models -------------------------------------------------------------------------------------------------

round() { sed -n 's/.*"round": \([0-9]*\).*/\1/p' svm.saved/train.json; }
weights() { tail -c 320 "$1"; }
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" $svm --passes 120 -o whole.model
# shellcheck disable=SC2086
killed svm.saved '[ -s svm.saved/train.json ] && [ "$(round)" -gt 3 ]' $svm --passes 120
done=$(($(round) - 1))
# shellcheck disable=SC2086
expect 0 "$pawl" $svm --passes $((120 - done)) -o resumed.model --checkpoint svm.saved --resume --json
said "\"resumed\":$done"
complained "resuming from round $done"
weights whole.model >whole.bits
weights resumed.model >resumed.bits
cmp whole.bits resumed.bits || fail 'a run that was killed and resumed gives other weights'

# refused TEXT ARGUMENT…: resuming is refused.
refused() {
  text=$1
  shift
  # shellcheck disable=SC2086
  expect 1 "$pawl" $svm -o no.model --passes 1 --resume "$@"
  complained "$text"
}
refused '\-\-graph was ring and is now complete' --checkpoint svm.saved --graph complete
refused '\-\-seed was 1 and is now 2' --checkpoint svm.saved --seed 2
refused '\-\-rate was 0.5 and is now 0.7' --checkpoint svm.saved --rate 0.7
mkdir empty.saved
refused 'no checkpoint of this job found at .*empty.saved/train.json' --checkpoint empty.saved
refused 'cannot resume from .*none.saved' --checkpoint none.saved
cp -r svm.saved bad.saved
turn=$(sed -n 's/.*"turn": \([01]\).*/\1/p' bad.saved/train.json)
printf X | dd of=bad.saved/train.1.$turn bs=1 seek=200 conv=notrunc 2>/dev/null
refused "load reduce .*bad.saved/train.1.$turn" --checkpoint bad.saved
for rank in 0 1 2; do cp svm.saved/train.0.$turn bad.saved/train.$rank.$turn; done
refused 'are not those of this checkpoint' --checkpoint bad.saved
for rank in 0 1 2; do printf 'my notes\n' >bad.saved/train.$rank.$turn; done
refused "load reduce .*bad.saved/train.[012].$turn" --checkpoint bad.saved
[ "$(cat bad.saved/train.0.$turn)" = 'my notes' ] || fail "a user's file has changed"

# Without --resume, files of other kinds are not replaced; training goes on, and the exit code tells.
mkdir mine.saved
for rank in 0 1 2; do printf 'my notes\n' >mine.saved/train.$rank.1; done
# shellcheck disable=SC2086
expect 1 "$pawl" $svm -o mine.model --passes 5 --checkpoint mine.saved --checkpoint-every 0.001
mine='no checkpoint was written: .*mine.saved/train.[012].1 is not a checkpoint of a reduce and is not replaced'
[ "$(grep -c "$mine; training goes on without" err)" -eq 1 ] || fail "not one warning: $(cat err)"
complained "$mine; the model was saved to mine.model, but --resume cannot go on from it"
[ "$(cat mine.saved/train.0.1)" = 'my notes' ] || fail "a user's file was replaced"
[ ! -e mine.saved/train.json ] || fail 'a checkpoint without files'

# A worker without a file takes over the weights of another one; so does one more worker.
cp -r svm.saved lost.saved
rm lost.saved/train.1.$turn
# shellcheck disable=SC2086
expect 0 "$pawl" $svm --passes 1 -o lost.model --checkpoint lost.saved --resume
complained '2 of 3 workers continue from their own files; the checkpoint is of 3 workers; the others take over'
rm lost.saved/train.*.[01]
refused 'no worker can resume from .*: there is no file' --checkpoint lost.saved
# shellcheck disable=SC2086
expect 0 "$pawl" $svm --workers 4 --passes 1 -o more.model --checkpoint svm.saved --resume
complained '3 of 4 workers continue'

# Servers have checkpoints of another kind.
expect 1 "$pawl" train svm rows.svm --no-bias --method sgd --minibatch 50 --workers 2 -o no.model --checkpoint svm.saved --resume
complained '\-\-share was reduce and is now not given'

# --- nets ----------------------------------------------------------------------------------------------------------

for average in models gradients; do
  graph=$([ $average = models ] && echo root || echo complete)
  # shellcheck disable=SC2086
  expect 0 "$pawl" $cnn --graph $graph --average $average --epochs 20 -o whole.model --json
  loss=$(figure loss)
  # shellcheck disable=SC2086
  killed cnn.saved '[ -s cnn.saved/train.json ] && [ "$(wide step cnn.saved/train.json)" -gt 4 ]' \
    $cnn --graph $graph --average $average --epochs 20
  step=$(wide step cnn.saved/train.json)
  # shellcheck disable=SC2086
  expect 0 "$pawl" $cnn --graph $graph --average $average --epochs 20 -o resumed.model --checkpoint cnn.saved --resume --json
  said "\"steps\":160,"
  said "\"resumed\":$step"
  complained "resuming from step $step of 160"
  cmp whole.model resumed.model || fail "$average: a run that was killed and resumed gives another net"
  [ "$(figure loss)" = "$loss" ] || fail "$average: the loss is $(figure loss) instead of $loss"
done

# A net is no success either without its last checkpoint, whose reason --quiet does not silence.
mkdir -p notes.saved
for rank in 0 1; do printf 'my notes\n' >notes.saved/train.$rank.1; done
# shellcheck disable=SC2086
expect 1 "$pawl" $cnn --epochs 2 -o notes.model --checkpoint notes.saved --checkpoint-every 0.001 --quiet
complained 'notes.saved/train.[01].1 is not a checkpoint of a reduce and is not replaced; the model was saved to notes.model'
[ -s notes.model ] || fail 'no net was written'

# refused_cnn TEXT ARGUMENT…: resuming is refused.
refused_cnn() {
  text=$1
  shift
  # shellcheck disable=SC2086
  expect 1 "$pawl" $cnn --graph complete --epochs 20 -o no.model --checkpoint cnn.saved --resume "$@"
  complained "$text"
}
refused_cnn '\-\-epochs was 20 and is now 21' --epochs 21
refused_cnn '\-\-average was gradients and is now models' --average models
cp labels right-labels
printf '\0' | dd of=labels bs=1 seek=60 conv=notrunc 2>/dev/null
cmp -s labels right-labels && printf '\1' | dd of=labels bs=1 seek=60 conv=notrunc 2>/dev/null
refused_cnn 'the set of images was 120 of'
cp right-labels labels
printf '{"step": 5' >cnn.saved/train.json
refused_cnn 'cnn.saved/train.json:1: '
printf '{}' >cnn.saved/train.json
refused_cnn 'was not given and is now'
expect 2 "$pawl" train cnn --model lenet images labels -o no.model --checkpoint-every 5
complained 'only workers that share by reduce have checkpoints'
expect 2 "$pawl" train cnn --model lenet images labels -o no.model --workers 2 --share servers --resume
complained 'only workers that share by reduce have checkpoints'

# Ctrl-C saves a checkpoint, whatever the interval. On a busy machine a worker may be lost at that moment; then again.
for _ in 1 2 3 4 5; do
  rm -f stopped.jsonl
  # shellcheck disable=SC2086
  "$pawl" $cnn --graph root --epochs 100000 -o stopped.model --checkpoint stopped.saved --log stopped.jsonl >stopped.out 2>stopped.err &
  trainer=$!
  until [ -s stopped.jsonl ]; do
    kill -0 "$trainer" 2>/dev/null || fail "the run ended: $(cat stopped.err)"
    sleep 0.05
  done
  kill -INT "$trainer"
  wait "$trainer" && fail 'an interrupted run succeeds' || [ $? -eq 130 ] || fail 'not 130'
  if [ -s stopped.saved/train.json ] || ! grep -q 'was lost' stopped.err; then break; fi
done
[ -s stopped.saved/train.json ] || fail "no checkpoint of an interrupted run: $(cat stopped.err)"
