#!/bin/sh
# Dictionaries by several workers from the command line: the steps of one process, by factors and by servers; patches; checkpoints;
# a worker that dies; which way is chosen; options that do not fit together.
# timeout: 600
# cost: 15
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Rows that are sums of two of twelve waves, with noise; and noisy images with bars.
python3 - <<'END'
import math, random, struct
random.seed(5)
with open('rows.svm', 'w') as rows:
    for i in range(300):
        a, b = random.randrange(12), random.randrange(12)
        x = [math.sin((a + 1) * d) - 0.6 * math.cos((b + 1) * d) + random.gauss(0, 0.05) for d in range(30)]
        rows.write('1' + ''.join(f' {d + 1}:{v:.5f}' for d, v in enumerate(x)) + '\n')
pixels = bytes(random.randrange(120) + (110 if (at + i) % 8 == 0 else 0) for i in range(40) for at in range(256))
open('bars-idx3', 'wb').write(struct.pack('>4I', 0x803, 40, 16, 16) + pixels)
END
rows='train sparse-coding rows.svm --atoms 10 --batch 30 --epochs 4 --tolerance 1e-8 --code-tolerance 1e-9'

# --- the steps of one process --------------------------------------------------------------------------------------

# same A B: two numbers differ by rounding.
same() {
  awk -v a="$1" -v b="$2" 'BEGIN { d = a < b ? b - a : a - b; exit !(d <= 1e-6 * b) }' || fail "$1 is not $2 ($how)"
}

# shellcheck disable=SC2086 # several words
expect 3 "$pawl" $rows -o alone.model --json
alone=$(figure objective)
for how in '--share factors' '--share matrix' '--share auto' '--share factors --workers 3' '--share matrix --servers 2' \
  '--share servers' '--share factors --graph ring --forward'; do
  # shellcheck disable=SC2086
  expect 3 "$pawl" $rows -o shared.model --json --workers 2 $how --log shared.jsonl
  same "$(figure objective)" "$alone"
  case $how in *ring*) ;; *factors*) said '"identical":true' ;; esac
  [ "$(lines_of shared.jsonl)" -eq "$(figure epochs)" ] || fail 'the log has not a line for each epoch'
  grep -q '"update_bytes":[1-9][0-9]*,"work_seconds":[0-9.e-]*,"wait_seconds":[0-9.e-]*}$' shared.jsonl || fail "$(cat shared.jsonl)"
done
expect 0 "$pawl" predict shared.model rows.svm -o codes.svm
# shellcheck disable=SC2086
expect 3 "$pawl" $rows -o shared.model --workers 2 --share factors --staleness async
said '^  workers  *2 finished, 0 lost; shared by factors'
said '^  network  .* of updates in [0-9]* steps; .* sent, .* received by workers in all$'
# shellcheck disable=SC2086
expect 3 "$pawl" $rows -o auto.model --workers 2 --batch 250 --json
said '"share":"matrix","share_asked":"auto"'
complained '^--share auto: matrix; a step of 2 workers sends [0-9.]*.*B as factors, '
patches='train sparse-coding bars-idx3 --patch 4 --patches 400 --center --atoms 12 --batch 40 --epochs 3 --tolerance 1e-8 --code-tolerance 1e-9'
how=patches
# shellcheck disable=SC2086
expect 3 "$pawl" $patches -o alone.model --json
alone=$(figure objective)
# shellcheck disable=SC2086
expect 3 "$pawl" $patches -o shared.model --json --workers 2 --share factors
same "$(figure objective)" "$alone"

# --- checkpoints ---------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
expect 3 "$pawl" $rows -o whole.model --json
whole=$(figure objective)
# shellcheck disable=SC2086
expect 3 "$pawl" $rows -o part.model --epochs 2 --checkpoint-every 1 --workers 2 --share factors
# shellcheck disable=SC2086
expect 3 "$pawl" $rows -o part.model --resume --workers 3 --share matrix --json
said '"resumed":2,'
how=resumed
same "$(figure objective)" "$whole"

# --- a worker that dies --------------------------------------------------------------------------------------------

long='train sparse-coding rows.svm --atoms 10 --batch 1 --epochs 12 --tolerance 1e-8 --code-tolerance 1e-9'
for how in factors matrix; do
  strike 4 killed-$how --workers 3 --share $how
  code=0
  wait "$trainer" || code=$?
  case $code in 0 | 3) ;; *) fail "killed-$how ends with $code: $(cat killed-$how.log)" ;; esac
  grep -q "worker $victim at .* was lost" killed-$how.log || fail "no word about the lost worker: $(cat killed-$how.log)"
  grep -q '^  workers  *2 finished, 1 lost' killed-$how.out || fail "the summary: $(cat killed-$how.out)"
  [ $how = matrix ] || grep -q '; identical, bit by bit$' killed-$how.out || fail "the survivors differ: $(cat killed-$how.out)"
  expect 0 "$pawl" predict killed-$how.model rows.svm -o codes.svm
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
refuses 2 '--graph needs --share factors' --workers 2 --share matrix --graph ring
refuses 2 'everyone sends to everyone, so there is nothing to forward' --workers 2 --share factors --forward
refuses 1 'lambda 100 makes every code 0' --workers 2 --share factors --lambda 100
