#!/bin/sh
# Multiclass models by several workers from the command line: the steps of one process, by factors and by servers; workers that die or
# stop; which way is chosen; options that do not fit together.
# timeout: 600
# cost: 20
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Rows of many features, of which each has few; and dense images with a bright bar, whose place is the label.
python3 - <<'END'
import random, struct
random.seed(3)
with open('rows.svm', 'w') as rows:
    for i in range(400):
        label = i % 4
        at = sorted(random.sample(range(1, 200), 12) + [200 + label])
        rows.write(f'{label} ' + ' '.join(f'{d}:{random.random():.3f}' for d in at) + '\n')
labels = bytes(random.randrange(4) for _ in range(200))
pixels = bytes(random.randrange(120) + (110 if at // 64 == label else 0) for label in labels for at in range(256))
open('idx-images', 'wb').write(struct.pack('>4I', 0x803, 200, 16, 16) + pixels)
open('idx-labels', 'wb').write(struct.pack('>2I', 0x801, 200) + labels)
open('few.svm', 'w').write('1 1:1\n2 2:1\n')
open('bad.svm', 'w').write('1 1:1\n2 2:nan\n')
END
rows='train multiclass rows.svm --method sgd --epochs 4 --batch 20 --rate 0.2'
images='train multiclass idx-images idx-labels --method sgd --epochs 3 --batch 20 --rate 0.1'

# --- the steps of one process --------------------------------------------------------------------------------------

# same A B: two numbers differ by rounding.
same() {
  awk -v a="$1" -v b="$2" 'BEGIN { d = a < b ? b - a : a - b; exit !(d <= 1e-8 * b) }' || fail "$1 is not $2 ($how)"
}

for data in rows images; do
  eval "train=\$$data"
  # shellcheck disable=SC2086,SC2154 # several words
  expect 0 "$pawl" $train -o alone.model --json
  alone=$(figure objective)
  for how in '--share factors' '--share matrix' '--share auto' '--share factors --workers 3' '--share matrix --workers 3' \
    '--share matrix --servers 2' '--share servers --servers 2' '--share factors --graph ring --forward'; do
    # shellcheck disable=SC2086
    expect 0 "$pawl" $train -o shared.model --json --workers 2 $how --log shared.jsonl
    same "$(figure objective)" "$alone"
    case $how in *ring*) ;; *factors*) said '"identical":true' ;; esac
  done
  [ "$(lines_of shared.jsonl)" -eq "$(figure epochs)" ] || fail 'the log has not a line for each epoch'
  grep -q '"update_bytes":[1-9][0-9]*,"work_seconds":[0-9.e-]*,"wait_seconds":[0-9.e-]*}$' shared.jsonl || fail "$(cat shared.jsonl)"
done
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o shared.model --workers 2 --share factors
said '^  workers  *2 finished, 0 lost; shared by factors; identical, bit by bit$'
said '^  network  .* of updates in 80 steps; .* sent, .* received by workers in all$'
for how in '--share factors --staleness 3' '--share factors --staleness async' '--share matrix --staleness 3' '--share matrix --staleness async' '--share servers --staleness 3'; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $rows -o late.model --json --workers 2 $how
  said '"why":"epochs"'
  said "\"staleness\":\"*${how##* }\"*,"
done

# --- which way -----------------------------------------------------------------------------------------------------

# 4 classes and 204 features: a pair is shorter than the rows of the matrix that it changes. 256 pixels of 20 images are not.
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o auto.model --workers 2 --json
said '"share":"factors","share_asked":"auto"'
complained '^--share auto: factors; a step of 2 workers sends [0-9.]*kB as factors, [0-9.]*kB as matrix, and [0-9.]*kB with factors up'
# shellcheck disable=SC2086
expect 0 "$pawl" $images -o auto.model --workers 2 --batch 200 --json
said '"share":"matrix","share_asked":"auto"'
complained '^--share auto: matrix; '

# --- losses and interruptions --------------------------------------------------------------------------------------

long='train multiclass rows.svm --method sgd --epochs 100000 --batch 20 --rate 0.2'
for how in factors matrix; do
  set_out killed-$how --workers 3 --share $how
  victim=$(children "$trainer" worker | head -n 1)
  kill -9 "$victim"
  eventually grep -q "worker $victim at .* was lost" killed-$how.log || fail "no word about the lost worker: $(cat killed-$how.log)"
  goes_on killed-$how.jsonl
  victim=$(children "$trainer" worker | head -n 1)
  kill -STOP "$victim" # the others wait, and go on with or without it
  sleep 5
  kill -CONT "$victim"
  goes_on killed-$how.jsonl
  kill -INT "$trainer"
  ends 130
  grep -q '^  workers  *[12] finished, [12] lost' killed-$how.out || fail "the summary: $(cat killed-$how.out)"
  grep -q 'the unfinished model was saved to ' killed-$how.log || fail "no word about the model: $(cat killed-$how.log)"
  [ $how = matrix ] || grep -q '; identical, bit by bit$' killed-$how.out || fail "the survivors differ: $(cat killed-$how.out)"
  expect 0 "$pawl" predict killed-$how.model rows.svm
done
set_out replaced --workers 2 --share factors --on-worker-loss replace
kill -9 "$(children "$trainer" worker | head -n 1)"
eventually sh -c "grep -c ' joined; ' replaced.log | grep -q '^[3-9]'" || fail "nobody came: $(cat replaced.log)"
goes_on replaced.jsonl
kill -INT "$trainer"
ends 130
grep -q '^  workers  *2 finished, 1 lost; shared by factors; identical' replaced.out || fail "the summary: $(cat replaced.out)"

# Duals of the rows of a lost worker begin anew, and the run proves that it comes near the optimum all the same.
long='train multiclass rows.svm --l2 0.0003 --tolerance 1e-7 --epochs 100000'
strike 60 dual --workers 3 --share factors
ends 0
grep -q '^converged after ' dual.out || fail "$(cat dual.out)"
grep -q '^  workers  *2 finished, 1 lost; shared by factors; identical' dual.out || fail "the summary: $(cat dual.out)"

# --- data and options ----------------------------------------------------------------------------------------------

expect 0 "$pawl" train multiclass few.svm --method sgd --epochs 2 -o few.model --workers 4 --share factors --json
said '"workers":4,'
expect 1 "$pawl" train multiclass bad.svm --method sgd -o no.model --workers 2 --share factors
complained 'bad.svm:2:'

# refuses CODE TEXT ARGUMENT…
refuses() {
  code=$1
  text=$2
  shift 2
  # shellcheck disable=SC2086
  expect "$code" "$pawl" $rows -o no.model "$@"
  complained "$text"
  [ ! -e no.model ] || fail "'$*' writes a model"
}
refuses 2 "invalid value 'reduce' for --share; expected factors, matrix, servers, auto or none" --share reduce
refuses 2 "invalid value '-1' for --staleness; expected a number of steps, up to 1000000, or async" --workers 2 --staleness=-1
refuses 2 'several workers have to share the matrix; give --share factors, matrix, servers or auto' --workers 2 --share none
refuses 2 'one process shares nothing' --share none --staleness 1
refuses 2 '--graph needs --share factors' --workers 2 --share matrix --graph ring
refuses 2 'everyone sends to everyone, so there is nothing to forward' --workers 2 --share factors --forward
refuses 2 '--share factors uses no servers; omit --servers and --replicas' --workers 2 --share factors --servers 2
refuses 1 'spiral' --workers 2 --share factors --graph spiral
expect 1 "$pawl" train multiclass rows.svm --workers 2 --staleness 1 -o no.model
complained 'sdca needs the weights after each step: it has no staleness and no graph; use sgd'
expect 1 "$pawl" train multiclass rows.svm --workers 2 --checkpoint no.state -o no.model
complained 'sdca by workers has no checkpoints'
