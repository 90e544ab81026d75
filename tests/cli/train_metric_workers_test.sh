#!/bin/sh
# Metrics by several workers from the command line: the steps of one process, by factors and by servers; checkpoints; workers that
# die or stop; which way is chosen; options that do not fit together.
# timeout: 600
# cost: 15
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Rows whose class is in two of eight features, the others are noise; some without a label.
python3 - <<'END'
import random
random.seed(4)
with open('rows.csv', 'w') as rows:
    rows.write('kind,' + ','.join(f'f{d}' for d in range(8)) + '\n')
    for i in range(300):
        x = [i % 3 + random.gauss(0, 0.3), (i % 3 == 1) + random.gauss(0, 0.3)] + [random.gauss(0, 2) for _ in range(6)]
        rows.write((f'c{i % 3}' if i % 20 else '') + ''.join(f',{v:.5f}' for v in x) + '\n')
END
rows='train metric rows.csv --rank 8 --batch 40 --epochs 6'

# --- the steps of one process --------------------------------------------------------------------------------------

# near A B: two numbers differ by rounding of float32.
near() {
  awk -v a="$1" -v b="$2" 'BEGIN { d = a < b ? b - a : a - b; exit !(d <= 1e-3 * b + 1e-6) }' || fail "$1 is not $2 ($how)"
}

# shellcheck disable=SC2086 # several words
expect 0 "$pawl" $rows -o alone.model --json
alone=$(figure objective)
held=$(figure error)
for how in '--share factors' '--share matrix' '--share auto' '--share factors --workers 3' '--share matrix --servers 2' \
  '--share servers' '--share factors --graph ring --forward'; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $rows -o shared.model --json --workers 2 $how --log shared.jsonl
  near "$(figure objective)" "$alone"
  near "$(figure error)" "$held"
  case $how in *ring*) ;; *factors*) said '"identical":true' ;; esac
  [ "$(lines_of shared.jsonl)" -eq "$(figure epochs)" ] || fail 'the log has not a line for each epoch'
  grep -q '"update_bytes":[1-9][0-9]*,"work_seconds":[0-9.e-]*,"wait_seconds":[0-9.e-]*}$' shared.jsonl || fail "$(cat shared.jsonl)"
done
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o shared.model --workers 2 --share factors --staleness 2
said '^  workers  *2 finished, 0 lost; shared by factors'
said '^  network  .* of updates in [0-9]* steps; .* sent, .* received by workers in all$'
expect 0 "$pawl" predict shared.model rows.csv
said '^error '
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o auto.model --workers 2 --batch 4000 --json
said '"share":"matrix","share_asked":"auto"'
complained '^--share auto: matrix; a step of 2 workers sends [0-9.]*.*B as factors, '

# --- checkpoints ---------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o whole.model --threads 1
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o part.model --epochs 3 --checkpoint-every 1
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o part.model --resume --json
said '"resumed":3,'
cmp whole.model part.model || fail 'a run that was resumed has another model'
# shellcheck disable=SC2086
expect 0 "$pawl" $rows -o part.model --epochs 8 --resume --workers 2 --share factors --json
said '"resumed":6,'
# shellcheck disable=SC2086
expect 1 "$pawl" $rows -o part.model --resume --margin 0.25
complained 'cannot resume: part.model.checkpoint: this checkpoint belongs to another training: --margin was 0.2.* and is now 0.25'
sed 2d rows.csv >fewer.csv
expect 1 "$pawl" train metric fewer.csv --rank 8 --batch 40 --epochs 8 -o part.model --resume
complained 'this checkpoint belongs to a training with other rows'
head -c 3000 part.model.checkpoint >cut.model.checkpoint
# shellcheck disable=SC2086
expect 1 "$pawl" $rows -o cut.model --resume
complained 'cannot resume: cut.model.checkpoint: '
# shellcheck disable=SC2086
expect 1 "$pawl" $rows -o none.model --resume
complained 'cannot resume: .*none.model.checkpoint'

# --- losses and interruptions --------------------------------------------------------------------------------------

# Many steps in each of the five epochs that such a rate does not make better.
long='train metric rows.csv --rank 8 --batch 1 --rate 1e-7'
for how in factors matrix; do
  strike 10 killed-$how --workers 3 --share $how
  code=0
  wait "$trainer" || code=$?
  case $code in 0 | 3) ;; *) fail "killed-$how ends with $code: $(cat killed-$how.log)" ;; esac
  grep -q "worker $victim at .* was lost" killed-$how.log || fail "no word about the lost worker: $(cat killed-$how.log)"
  grep -q '^  workers  *2 finished, 1 lost' killed-$how.out || fail "the summary: $(cat killed-$how.out)"
  [ $how = matrix ] || grep -q '; identical, bit by bit$' killed-$how.out || fail "the survivors differ: $(cat killed-$how.out)"
  expect 0 "$pawl" predict killed-$how.model rows.csv
done

# --- options -------------------------------------------------------------------------------------------------------

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
refuses 2 'several workers have to share the matrix' --workers 2 --share none
refuses 2 'one process shares nothing' --share none --staleness 1
refuses 2 '--graph needs --share factors' --workers 2 --share matrix --graph ring
refuses 2 '--share factors uses no servers' --workers 2 --share factors --servers 2
refuses 1 'the rank 60 is above the number of features' --workers 2 --share factors --rank 60
refuses 1 'spiral' --workers 2 --share factors --graph spiral
