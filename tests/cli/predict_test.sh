#!/bin/sh
# Predictions and models from the command line: figures by hand, all formats, bad input; and the same answers as LIBLINEAR's, both
# ways.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# --- figures that one can compute by hand -------------------------------------------------------------------------------------

cat >hand.txt <<'END'
solver_type L1R_L2LOSS_SVC
nr_class 2
label 1 -1
nr_feature 3
bias 1
w
2
0
-1
0.5
# pawl {"l1": 0.5, "l2": 2, "features": 3, "loss": "squared hinge"}
END
# Scores: 2.5, -0.5, 0.5 (wrong), 0 + 0.5 = 0.5, and one of no class.
cat >hand.svm <<'END'
+1 1:1
-1 3:1
-1 2:7
+1
5 1:1 9:4
END
expect 0 "$pawl" predict hand.txt hand.svm -o out.txt
said '^rows *5$'
said '^accuracy *75.000 %$'
said '^AUC *0.875$'
said '^weights *2 of 3 features, and a bias$'
said '^unknown labels *1 rows$'
said '^unknown features *1$'
# Losses 0, 0.25, 2.25, 0.25; l1: 0.5 * 3; l2: 2 / 2 * 5.
said '^objective *9.25: loss 2.75, penalty 6.5$'
printf '1\n-1\n1\n1\n1\n' >wanted
cmp -s wanted out.txt || fail "predictions: $(cat out.txt)"
expect 0 "$pawl" predict hand.txt hand.svm --json --l1 0 --l2 0
said '^{"rows":5,"accuracy":0.75,"auc":0.875,"log_loss":0.[0-9]*,"objective":2.75,"loss":2.75,"penalty":0.0,"nnz":2,"features":3,'
said '"unknown_labels":1,"unknown_features":1,"skipped":0}$'
expect 0 "$pawl" predict hand.txt hand.svm -o - --scores
printf '2.5\n-0.5\n0.5\n0.5\n2.5\n' >wanted
cmp -s wanted out || fail "scores: $(cat out)"
complained '^accuracy *75.000 %$'

# Data that nothing can be compared with is predicted all the same.
printf '7 1:1\n8 3:4\n' >other.svm
expect 0 "$pawl" predict hand.txt other.svm -o out.txt
complained 'no row has a label of the model (-1 or 1)'
printf '1\n-1\n' >wanted
cmp -s wanted out.txt || fail "predictions: $(cat out.txt)"
printf '1 77:1 78:1\n-1 1:1 79:2\n' >strange.svm
expect 0 "$pawl" predict hand.txt strange.svm
complained 'was it trained on other data?'
said '^unknown features *3$'

# Order is that of the data, however many pieces and threads there are.
awk 'BEGIN { for (i = 0; i < 150000; i++) print (i % 2 ? 1 : -1), "1:" i % 977, "3:" i % 1009 }' >long.svm
awk '{ split($2, a, ":"); split($3, b, ":"); print 2 * a[2] - b[2] + 0.5 }' long.svm >wanted
expect 0 "$pawl" predict hand.txt long.svm --threads 4 -o out.txt --scores
cmp -s wanted out.txt || fail "the order of rows is another: $(diff wanted out.txt | head -5)"

# --- models -------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" model show hand.txt
said '^loss *squared hinge$'
said '^labels *1 where the score is positive, else -1$'
said '^penalty *l1 0.5, l2 2$'
said '^ *1 *2$'
printf 'one\ntwo\nthree\n' >words
expect 0 "$pawl" model show hand.txt --top 1 --vocabulary words
said '^ *1 *2  one$'
expect 0 "$pawl" model show hand.txt --json --vocabulary words
said '"top":\[{"id":1,"weight":2.0,"name":"one"},{"id":3,"weight":-1.0,"name":"three"}\]}$'
expect 1 "$pawl" model show hand.txt --vocabulary nowhere
complained 'cannot read nowhere'

for file in m.model m.npy m.txt again.model; do
  expect 0 "$pawl" model export hand.txt -o "$file"
  said "^wrote $file"
  expect 0 "$pawl" predict "$file" hand.svm --json
  said '"objective":9.25,"loss":2.75,"penalty":6.5,"nnz":2,'
done
cmp -s m.model again.model || fail 'the same model is written in two ways'
head -c 16 m.model | grep -q '^pawl-model 1' || fail 'what does a model begin with?'
expect 0 "$pawl" model export m.npy -o odd.name --format liblinear --json
said '^{"file":"odd.name","format":"liblinear","nnz":2}$'
grep -q '^label 1 -1$' odd.name || fail "the labels: $(head -5 odd.name)"
expect 1 "$pawl" model export nowhere -o x
complained 'cannot read nowhere: No such file'
expect 1 "$pawl" model export m.model -o no/such/folder
complained 'cannot write no/such/folder'
rm m.npy.json
expect 1 "$pawl" predict m.npy hand.svm
complained 'm.npy.json, is missing'
head -c 300 m.model >cut.model
expect 1 "$pawl" predict cut.model hand.svm
complained 'cut.model: the file ends'
expect 1 "$pawl" predict hand.svm hand.svm
complained 'hand.svm: not a model'
ls >names
if grep -q 'new-' names; then fail "a draft was left behind: $(cat names)"; fi

# --- what cannot be meant -----------------------------------------------------------------------------------------------------

expect 1 "$pawl" predict hand.txt hand.svm -o - --probabilities
complained 'only logistic models have probabilities'
expect 1 "$pawl" predict hand.txt nowhere.svm
complained 'nowhere.svm'
printf '1 1:1\n1 x\n' >bad.svm
expect 1 "$pawl" predict hand.txt bad.svm
complained 'bad.svm:2:'
expect 0 "$pawl" predict hand.txt bad.svm --skip-bad 1
said '^skipped *1 rows, the first at bad.svm:2:'
sed 's/"l1"/"hash_bits": 20, "l1"/' hand.txt >hashed.txt
expect 0 "$pawl" predict hashed.txt hand.svm
complained 'trained on hashed names'
printf '1 |a one two\n-1 |a three\n' >words.vw
expect 1 "$pawl" predict hand.txt words.vw
complained 'features in vw data are hashed names, but hand.txt was trained on numbered features'
expect 0 "$pawl" predict hand.txt words.vw --hash-bits 2
expect 0 "$pawl" predict hashed.txt words.vw
expect 1 "$pawl" predict hashed.txt hand.svm --hash-bits 18
complained 'hashed to 20 bits, not to 18'
while read -r wrong; do
  # shellcheck disable=SC2086
  expect 2 "$pawl" $wrong
done <<'END'
predict
predict hand.txt
predict hand.txt hand.svm --scores
predict hand.txt hand.svm -o x --scores --probabilities
predict hand.txt hand.svm --format word
predict hand.txt hand.svm --threads 0
predict hand.txt hand.svm --hash-bits 63
predict hand.txt hand.svm --l1 -1
predict hand.txt hand.svm --l2 many
model
model show
model show hand.txt --top few
model export hand.txt
model export hand.txt -o x --format onnx
END

# --- LIBLINEAR ----------------------------------------------------------------------------------------------------------------

if ! command -v liblinear-train >/dev/null || ! command -v liblinear-predict >/dev/null; then
  echo 'liblinear-train is not here: no comparison' >&2
  exit 77
fi

# rows FIRST SECOND SEED: 400 rows, of which the first is of the first label; values are exact in any precision.
rows() {
  awk -v first="$1" -v second="$2" -v state="$3" '
    function random(n) { state = (state * 1103515 + 12345) % 2147483; return state % n }
    BEGIN {
      for (i = 0; i < 400; i++) {
        line = ""; sum = 0
        for (id = 1; id <= 30; id++) if (random(4) == 0) {
          value = (random(33) - 16) / 8; line = line " " id ":" value; sum += value * (id % 7 - 3)
        }
        is_second = sum + random(9) - 4 > 0
        print (i == 0 ? first : is_second ? second : first) line
      }
      print first # a row that scores 0, or the bias
    }'
}

# same MODEL DATA: both predict the same.
same() {
  liblinear-predict "$2" "$1" theirs >/dev/null
  expect 0 "$pawl" predict "$1" "$2" -o ours
  awk 'NR == FNR { a[NR] = $1; n = NR; next } { m = FNR; d = $1 - a[FNR]; if (d < -1e-9 || d > 1e-9) exit 1 } END { if (m != n) exit 1 }' \
    theirs ours || fail "other predictions than LIBLINEAR's with $1: $(diff theirs ours | head -5)"
}

for labels in '-1 1' '1 -1' '0 1' '7 -3'; do
  # shellcheck disable=SC2086
  rows $labels 1 >train.svm
  # shellcheck disable=SC2086
  rows $labels 2 >test.svm
  echo "${labels% *} 5:1 31:4 1000:2" >>test.svm
  solvers='0 6'
  if [ "$labels" = '-1 1' ]; then solvers='0 1 2 3 5 6 7'; fi
  for solver in $solvers; do
    for bias in -1 2.5; do
      liblinear-train -q -s "$solver" -B $bias train.svm theirs.m
      same theirs.m test.svm
      expect 0 "$pawl" model export theirs.m -o ours.liblinear
      same ours.liblinear test.svm
      expect 0 "$pawl" model export ours.liblinear -o ours.m
      cp ours before
      expect 0 "$pawl" predict ours.m test.svm -o ours
      cmp -s ours before || fail "a model changed on its way (solver $solver, bias $bias, labels $labels)"
    done
  done
done
for solver in 11 12 13; do
  liblinear-train -q -s "$solver" -B 1 train.svm theirs.m
  same theirs.m test.svm
  expect 0 "$pawl" model export theirs.m -o ours.liblinear
  same ours.liblinear test.svm
  expect 0 "$pawl" predict ours.liblinear test.svm
  said '^RMSE '
done

# Probabilities: theirs are of the first label they name.
rows -1 1 1 >train.svm
liblinear-train -q -s 0 train.svm theirs.m
liblinear-predict -b 1 train.svm theirs.m theirs >/dev/null
expect 0 "$pawl" predict theirs.m train.svm -o ours --probabilities
tail -n +2 theirs | paste -d ' ' - ours | awk '{ d = $2 - $5; if ($1 != $4 || d < -1e-5 || d > 1e-5) exit 1 }' ||
  fail "other probabilities than LIBLINEAR's"

# The optimum that LIBLINEAR finds is one of the objective that is computed here: C = 1/2 is l2 = 2.
liblinear-train -s 0 -c 0.5 -e 1e-8 train.svm theirs.m >/dev/null
expect 0 "$pawl" predict theirs.m train.svm --l2 2 --json
best=$(sed 's/.*"objective":\([0-9.]*\),.*/\1/' out)
for weight in 0.99 1.01; do
  awk -v by=$weight 'on { $1 = $1 * by } /^w$/ { on = 1 } { print }' theirs.m >worse.m
  expect 0 "$pawl" predict worse.m train.svm --l2 2 --json
  worse=$(sed 's/.*"objective":\([0-9.]*\),.*/\1/' out)
  awk -v a="$best" -v b="$worse" 'BEGIN { exit !(a < b) }' || fail "objective $best should be below $worse"
done

# Training goes on from a model of LIBLINEAR's, whichever label that names first.
for labels in '0 1' '1 0'; do
  # shellcheck disable=SC2086
  rows $labels 1 >train.svm
  liblinear-train -s 0 -e 1e-8 train.svm theirs.m >/dev/null
  expect 0 "$pawl" predict theirs.m train.svm --l2 1 --json
  best=$(sed 's/.*"objective":\([0-9.]*\),.*/\1/' out)
  expect 0 "$pawl" train logistic train.svm --l2 1 --no-bias --start theirs.m --rounds 1 --workers 1 -o started.m
  expect 0 "$pawl" predict started.m train.svm --json
  next=$(sed 's/.*"objective":\([0-9.]*\),.*/\1/' out)
  awk -v a="$best" -v b="$next" 'BEGIN { exit !(b < a * 1.01) }' || fail "from $best to $next, with labels $labels"
done

printf '1 1:1\n2 2:1\n3 3:1\n' >three.svm
liblinear-train -q three.svm three.m
expect 1 "$pawl" predict three.m three.svm
complained 'three.m: this is a LIBLINEAR model of 3 classes; only models of two are supported'
liblinear-train -q -s 4 train.svm cs.m
expect 1 "$pawl" model show cs.m
complained 'MCSVM_CS'
