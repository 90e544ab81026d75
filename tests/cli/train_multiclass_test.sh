#!/bin/sh
# Multiclass models from the command line: training by both methods, labels that are words, images, predictions and the
# confusion matrix, checkpoints; good input and bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Three kinds of animals in each format, and images whose class is the bright third.
python3 - <<'END'
import gzip, random, struct
random.seed(3)
kinds = {'cat': (2, 0, 0), 'dog': (0, 2, 0), '7': (0, 0, 2)}
rows = []
for n in range(300):
    kind = random.choice(list(kinds))
    rows.append((kind, [c + random.gauss(0, 0.6) for c in kinds[kind]]))
train, test = rows[:220], rows[220:]
svm = lambda k, x: k + ''.join(f' {3 * i + 1}:{v:.4f}' for i, v in enumerate(x))
csv = lambda k, x: ','.join([k] + [f'{v:.4f}' for v in x])
write = lambda name, lines: open(name, 'w').write('\n'.join(lines) + '\n')
write('train.svm', [svm(*row) for row in train])
write('test.svm', [svm(*row) for row in test])
gzip.open('train.svm.gz', 'wt').write(open('train.svm').read())
write('train.csv', ['kind,a,b,c'] + [csv(*row) for row in train])
write('test.csv', ['kind,a,b,c'] + [csv(*row) for row in test])
write('bare.csv', ['a,b,c'] + [csv(*row).split(',', 1)[1] for row in test])
def images(name, count):
    labels = [random.choice((0, 1, 3)) for _ in range(count)]
    pixels = b''.join(bytes(random.randrange(100) + (155 if i // 3 == {0: 0, 1: 1, 3: 2}[k] else 0) for i in range(9)) for k in labels)
    open(name + '-images-idx3-ubyte', 'wb').write(struct.pack('>IIII', 0x803, count, 3, 3) + pixels)
    open(name + '-labels-idx1-ubyte', 'wb').write(struct.pack('>II', 0x801, count) + bytes(labels))
images('train', 200)
images('t10k', 50)
noise = lambda count: [svm(random.choice(list(kinds)), [random.gauss(0, 1) for _ in range(20)]) for _ in range(count)]
write('noise.svm', noise(150))
write('noise.test', noise(300))
END

# --- training ----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train multiclass train.svm --test test.svm -o animals.model --log animals.jsonl
said '^converged after [0-9]* epochs* of sdca$'
said '^  weights  *3 classes, 3 features and a constant$'
said '^  distance  *at most 0\.[0-9e-]* % above the optimum$'
said '^  train error  *[0-9.]* % of 220 rows$'
said '^  test error  *[0-9.]* % of 80 rows, mean loss 0\.'
said '^next:  pawl predict animals.model DATA$'
complained '^epoch 1/1000  objective [0-9.]*  gap [0-9.e+-]*  train error [0-9.]* %  test error [0-9.]* %  .* rows/s'
grep -q '"epoch":1,"epochs":1000,"objective":[0-9.]*,"gap":[0-9.e-]*,"train_error":0' animals.jsonl || fail "the log: $(cat animals.jsonl)"

# Any number of threads gives the same model; another order of rows another one.
for threads in 1 3; do
  expect 0 "$pawl" train multiclass train.svm.gz --test test.svm -o again.model --threads $threads --quiet
  [ ! -s out ] && [ ! -s err ] || fail 'quiet is not quiet'
  cmp -s animals.model again.model || fail "$threads threads give another model"
done
expect 0 "$pawl" train multiclass train.svm --seed 2 -o other.model --json
said '"model":"other.model","method":"sdca","classes":3,"features":3,"rows":220,"entries":660,"why":"converged","converged":true,"advice":null,'
cmp -s animals.model other.model && fail 'another seed gives the same model'

expect 0 "$pawl" train multiclass train.svm --method sgd --epochs 5 --batch 10 --test test.svm -o sgd.model
said '^done after 5 epochs of sgd$'
said '^  rate  *[0-9.]* at first, batches of 10 rows$'
expect 0 "$pawl" train multiclass train.csv --test test.csv -o csv.model --quiet
expect 0 "$pawl" train multiclass train-images-idx3-ubyte train-labels-idx1-ubyte --test t10k-images-idx3-ubyte \
  --test t10k-labels-idx1-ubyte -o digits.model --json
said '"classes":3,"features":9,"rows":200,'

# --- runs that are no success ------------------------------------------------------------------------------------------------------

expect 3 "$pawl" train multiclass train.svm --l2 1e-3 --epochs 1 --tolerance 1e-9 -o short.model
said '^NOT converged: reached the limit of epochs after 1 epoch of sdca$'
complained 'short.model has NOT converged (epochs); try more --epochs'
expect 3 "$pawl" train multiclass train.svm --l2 1e-3 --epochs 1 --tolerance 1e-9 -o short.model --quiet
complained 'short.model has NOT converged (epochs); try more --epochs'
[ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "quiet is not quiet: $(cat out err)"
expect 3 "$pawl" train multiclass train.svm --method sgd --l2 0 --rate 1000 --schedule constant --epochs 2 -o wild.model
said '^DIVERGED: the model is no better than weights of zero'
complained 'wild.model has DIVERGED (diverged); try a lower --rate'

# Labels that nothing tells: the run has converged, but test rows tell what that is worth.
expect 3 "$pawl" train multiclass noise.svm --test noise.test -o noise.model
said '^converged after '
said '^  test error  .*; NO BETTER THAN GUESSING$'
complained 'noise.model is NO BETTER THAN GUESSING on the test rows: it is wrong on [0-9.]* % of them, and the most frequent class on 6[0-9.]* %'
expect 3 "$pawl" train multiclass noise.svm --test noise.test -o noise.model --json
said '"guessing":true'
expect 0 "$pawl" train multiclass noise.svm -o noise.model # without them nothing tells
expect 0 "$pawl" train multiclass train.svm --test test.svm -o animals.model --json
said '"test_guess_error":0\.6[0-9]*,"guessing":false'

# --- models and predictions --------------------------------------------------------------------------------------------------------

expect 0 "$pawl" model show animals.model --top 2
said '^model  *multiclass logistic regression by sdca$'
said '^weights  *3 classes, 3 features and a constant$'
said '^ *cat  *[-0-9.]*  1:2\.'
expect 0 "$pawl" model show animals.model --json
said '"kind":"multiclass","classes":3,.*"labels":\[{"label":"7","bias":'

expect 0 "$pawl" predict animals.model test.svm
said '^rows  *80$'
said '^error  *[0-9.]* %: [0-9]* rows are wrong$'
said '^ *label   predicted$'
said '^ *cat  *[0-9]*  *[0-9]*  *[0-9]*$'
expect 0 "$pawl" predict animals.model test.svm --json -o labels
python3 - <<'END'
import json
answer, lines = json.load(open('out')), open('labels').read().split()
own = [line.split()[0] for line in open('test.svm')]
labels = answer['labels']
assert labels == ['7', 'cat', 'dog'], labels
matrix = [[sum(a == i and b == j for a, b in zip(own, lines)) for j in labels] for i in labels]
assert matrix == answer['confusion'], (matrix, answer)
assert answer['judged'] == 80 and answer['wrong'] == sum(a != b for a, b in zip(own, lines)) and answer['error'] < 0.1, answer
END
expect 0 "$pawl" predict animals.model test.svm -o - --probabilities
awk 'NF != 4 || $2 + $3 + $4 < 0.9999 || $2 + $3 + $4 > 1.0001 { exit 1 }' out || fail "probabilities: $(head -n 3 out)"
expect 0 "$pawl" predict csv.model test.csv -o with.csv --json
expect 0 "$pawl" predict csv.model bare.csv -o without.csv --json
said '"rows":80,"judged":0,.*"unlabelled":80,'
cmp -s with.csv without.csv || fail 'rows without labels are predicted differently'
expect 0 "$pawl" predict digits.model t10k-images-idx3-ubyte t10k-labels-idx1-ubyte --json
said '"rows":50,"judged":50,"wrong":[0-5],.*"labels":\["0","1","3"\]'

# LIBLINEAR's own program predicts the same, where it is installed.
sed 's/^cat/1/; s/^dog/2/' train.svm >numbers.svm
sed 's/^cat/1/; s/^dog/2/' test.svm >numbers.test.svm
expect 0 "$pawl" train multiclass numbers.svm -o numbers.model --quiet
expect 0 "$pawl" model export numbers.model -o numbers.liblinear
said '^wrote numbers.liblinear (liblinear)$'
grep -q '^label 1 2 7$' numbers.liblinear || fail "the labels: $(head -n 5 numbers.liblinear)"
[ "$(sed -n '/^w$/,$p' numbers.liblinear | wc -l)" -eq 9 ] || fail 'not a line for each of seven ids and the bias'
if command -v liblinear-predict >/dev/null; then
  expect 0 "$pawl" predict numbers.model numbers.test.svm -o ours
  liblinear-predict numbers.test.svm numbers.liblinear theirs >/dev/null
  cmp -s ours theirs || fail 'LIBLINEAR predicts otherwise'
fi

printf 'zebra 1:2 4:0 7:0\ncat 1:2 99:1\n4:2\n' >strange.svm
expect 0 "$pawl" predict animals.model strange.svm --json
said '"rows":3,"judged":1,.*"unlabelled":1,"unknown_labels":1,"unknown_values":1,'
expect 0 "$pawl" train multiclass train.svm --test strange.svm -o strange.model --skip-bad 1
complained 'skipped 1 bad row, the first: strange.svm:3:1: expected a label before the features'
complained 'left out 1 test row whose label no training row has'

# --- checkpoints -------------------------------------------------------------------------------------------------------------------

"$pawl" train multiclass train.svm --method sgd --epochs 50000000 -o long.model --checkpoint-every 1 --log long.jsonl >long.out 2>long.log &
trainer=$!
pids="$pids $trainer"
eventually test -s long.jsonl || fail 'the long run does not begin'
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
[ "$code" -eq 130 ] || fail "an interrupted run exits with $code"
grep -q 'the unfinished model was saved to long.model; continue with --resume' long.log || fail "no word about the model: $(tail -n 3 long.log)"
expect 0 "$pawl" predict long.model test.svm
expect 1 "$pawl" train multiclass train.svm --method sgd --epochs 50000000 --l2 2 -o long.model --resume
complained 'cannot resume: long.model.checkpoint: this checkpoint belongs to another training: --l2 was 1 and is now 2'

# A run that is killed on the way and resumed gives the model of a run that was not.
run='--method sgd --epochs 3000 --batch 20'
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" train multiclass train.svm $run -o whole.model --quiet
# shellcheck disable=SC2086
"$pawl" train multiclass train.svm $run -o killed.model --checkpoint killed.state >killed.out 2>killed.log &
trainer=$!
pids="$pids $trainer"
eventually grep -q 'epoch 3/' killed.log || fail 'the run does not begin'
kill -KILL "$trainer" 2>/dev/null || true
wait "$trainer" || true
# shellcheck disable=SC2086
expect 0 "$pawl" train multiclass train.svm $run -o killed.model --checkpoint killed.state --checkpoint-every 1000 --resume --json
said '"why":"epochs",.*"epochs":3000,'
cmp -s whole.model killed.model || fail 'a resumed run gives another model'

# --- bad input ---------------------------------------------------------------------------------------------------------------------

# refuses CODE TEXT ARGUMENT…: the exit code and the message; no model is written.
refuses() {
  code=$1
  text=$2
  shift 2
  rm -f no.model
  expect "$code" "$pawl" "$@"
  complained "$text"
  [ ! -e no.model ] || fail "'$*' writes a model"
}

echo 'cat 1:1' >one.svm
refuses 1 "all rows have the label 'cat'; two classes at least are needed" train multiclass one.svm -o no.model
(cat train.svm; echo 'cat 1:nan') >bad.svm
refuses 1 'bad.svm:221:' train multiclass bad.svm -o no.model
(cat train.svm; echo 'cat,dog 1:1') >several.svm
refuses 1 'several.svm:221:1: several labels; expected one' train multiclass several.svm -o no.model
refuses 1 'nothing.svm' train multiclass nothing.svm -o no.model
refuses 2 'sdca needs a penalty' train multiclass train.svm --l2 0 -o no.model
refuses 2 'sdca has no learning rate' train multiclass train.svm --rate 1 -o no.model
refuses 2 "invalid value 'newton' for --method; expected sdca or sgd" train multiclass train.svm --method newton
refuses 2 'the files are images' train multiclass train-images-idx3-ubyte train-labels-idx1-ubyte --unit-rows -o no.model
refuses 1 'the model was trained on images, but these are rows\|not an idx\|idx' predict digits.model test.svm
refuses 2 'animals.model is a multiclass model; --scores' predict animals.model test.svm --scores -o no.model
refuses 1 "LIBLINEAR's labels are whole numbers below 2^31, but this model has the label 'cat'" model export animals.model -o no.liblinear
refuses 2 "a multiclass model is exported in LIBLINEAR's format only" model export digits.model -o no.npy
head -c 600 animals.model >cut.model
refuses 1 'cut.model: ' predict cut.model test.svm
