#!/bin/sh
# --scale: features of any size train as if the file had been scaled before, and the model is of the file as it is.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Features of sizes from 1e-3 to 1e4, and the same divided by the largest value of each.
awk 'BEGIN { srand(11)
  for (j = 1; j <= 12; j++) size[j] = exp(log(10) * (-3 + 7 * rand()))
  for (i = 1; i <= 400; i++) { z = 0.2
    for (j = 1; j <= 12; j++) { x[i, j] = rand() < 0.5 ? 0 : (rand() + rand() - 0.7) * size[j]; z += (j % 3 - 1) * x[i, j] / size[j]
      a = x[i, j] < 0 ? -x[i, j] : x[i, j]; if (a > most[j]) most[j] = a }
    y[i] = z + rand() - 0.5 > 0 ? 1 : -1 }
  for (i = 1; i <= 400; i++) { raw = by_hand = y[i]
    for (j = 1; j <= 12; j++) if (x[i, j] != 0) {
      raw = raw sprintf(" %d:%.9g", j, x[i, j]); by_hand = by_hand sprintf(" %d:%.9g", j, x[i, j] / most[j]) }
    print raw > "raw.svm"; print by_hand > "by_hand.svm" } }'

# near A B: two numbers differ by less than 0.01 %.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !((d < 0 ? -d : d) <= 1e-4 * b) }' || fail "$1 is not near $2"; }

for kind in logistic svm; do
  for method in '' '--method subgradient' '--workers 3'; do
    if [ "$kind" = svm ] && [ "$method" = '--method subgradient' ]; then continue; fi
    # shellcheck disable=SC2086 # several words
    expect 0 "$pawl" train $kind by_hand.svm --tolerance 1e-5 --rounds 900 --json -o by_hand.model $method
    best=$(figure objective)
    # shellcheck disable=SC2086
    expect 0 "$pawl" train $kind raw.svm --scale max --tolerance 1e-5 --rounds 900 --json -o raw.model $method
    said '"scale":"max"'
    near "$(figure objective)" "$best"
    trained=$(figure objective)
    expect 0 "$pawl" predict raw.model raw.svm --json -o raw.predictions
    near "$(figure objective)" "$trained"
    "$pawl" predict by_hand.model by_hand.svm --scores -o by_hand.scores >/dev/null 2>&1
    "$pawl" predict raw.model raw.svm --scores -o raw.scores >/dev/null 2>&1
    paste raw.scores by_hand.scores | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 0.05) exit 1 }' || fail "other scores: $kind $method"
  done
done

# Unscaled, its figures are others: the option does something.
expect 0 "$pawl" train logistic raw.svm --json -o plain.model
said '"scale":"none"'
[ "$(figure objective)" != "$best" ] || fail 'nothing was scaled'

# The model says so, in every format.
expect 0 "$pawl" train logistic raw.svm --scale deviation -o d.model -q
expect 0 "$pawl" model show d.model
said '^penalty .*, on weights of features divided by their standard deviation$'
expect 0 "$pawl" model show d.model --json
said '"scale": *"deviation"'
for format in liblinear npy; do
  expect 0 "$pawl" model export d.model --format $format -o "d.$format"
  expect 0 "$pawl" model show "d.$format" --json
  said '"scale": *"deviation"'
done

# Validation data, and rows that are held out.
expect 0 "$pawl" train logistic raw.svm --scale max --valid raw.svm --json -o v.model
expect 0 "$pawl" train logistic raw.svm --scale max --valid-split 0.2 --early-stop 3 --json -o v.model
if grep -q '"valid_loss":null' out; then fail "no validation loss: $(cat out)"; fi

# A run that goes on is of the same scale.
run() { # EXIT ARGUMENT…
  code=$1
  shift
  expect "$code" "$pawl" train logistic raw.svm --method blocks -o r.model --checkpoint r.saved --checkpoint-every 0.001 "$@" --json
}
run 0 --scale deviation --tolerance 1e-15 --rounds 3
run 1 --resume
complained '\-\-scale was deviation and is now none'
run 1 --resume --scale max
complained '\-\-scale was deviation and is now max'
run 0 --resume --scale deviation --tolerance 1e-6 --rounds 900
said '"resumed":3'
resumed=$(figure objective)
expect 0 "$pawl" train logistic raw.svm --scale deviation --tolerance 1e-6 --json -o w.model
near "$resumed" "$(figure objective)"

# Where it cannot be done, it is said.
for method in sgd adagrad ftrl; do
  expect 2 "$pawl" train logistic raw.svm --scale max --method $method
  complained '\-\-scale reads all data first'
done
expect 2 "$pawl" train logistic raw.svm --scale 3
complained "'3' for --scale; expected none, max or deviation"
