#!/bin/sh
# Dictionaries from the command line: training on rows and on patches of images, codes, pictures, checkpoints; good input and
# bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Rows that are sums of two of six hidden atoms, in two formats, and images of bars.
python3 - <<'END'
import random, struct
random.seed(4)
atoms = [[random.gauss(0, 1) for _ in range(8)] for _ in range(6)]
def row():
    x = [random.gauss(0, 0.02) for _ in range(8)]
    for k in random.sample(range(6), 2):
        c = random.gauss(0, 1)
        x = [v + c * a for v, a in zip(x, atoms[k])]
    return x
rows = [row() for _ in range(260)]
svm = lambda x: random.choice(('cat', '7')) + ''.join(f' {3 * i + 1}:{v:.5f}' for i, v in enumerate(x))
write = lambda name, lines: open(name, 'w').write('\n'.join(lines) + '\n')
write('train.svm', [svm(x) for x in rows[:200]])
write('test.svm', [svm(x) for x in rows[200:]])
write('train.csv', ['kind,' + ','.join('abcdefgh')] + ['x,' + ','.join(f'{v:.5f}' for v in x) for x in rows[:200]])
write('bare.csv', [','.join('abcdefgh')] + [','.join(f'{v:.5f}' for v in x) for x in rows[200:]])
def images(name, count):
    pixels = b''
    for _ in range(count):
        bar = random.randrange(12)
        pixels += bytes(random.randrange(20) + (200 if x == bar or y == bar else 0) for y in range(12) for x in range(12))
    open(name, 'wb').write(struct.pack('>IIII', 0x803, count, 12, 12) + pixels)
images('bars-idx3', 60)
images('more-idx3', 10)
open('small.cifar', 'wb').write(b''.join(bytes([i]) + bytes(random.randrange(256) for _ in range(3072)) for i in range(3)))
END

# --- training ----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train sparse-coding train.svm --atoms 8 --lambda 0.1 --test test.svm -o sums.model --log sums.jsonl
said '^converged after [0-9]* epochs$'
said '^  dictionary  *8 atoms of 8 features; lambda 0\.1$'
said '^  gap  *neither better codes nor better atoms alone could win more than 0\.[0-9]* %$'
said '^  codes  *[0-9.]* non-zeros in a row, [0-9.]* % of 8$'
said '^  test error  *[0-9.]* % of the squares of 60 rows, [0-9.]* non-zeros in a row$'
said '^next:  pawl predict sums.model DATA -o codes.svm$'
complained '^epoch 1/100  objective [0-9.]*  gap [0-9.e+-]*  error [0-9.]* %  non-zeros [0-9.]*  test error [0-9.]* %  .* rows/s'
grep -q '"epoch":1,"epochs":100,"objective":[0-9.]*,"gap":[0-9.e-]*,"error":0' sums.jsonl || fail "the log: $(cat sums.jsonl)"

for threads in 1 3; do
  expect 0 "$pawl" train sparse-coding train.svm --atoms 8 --lambda 0.1 --test test.svm -o again.model --threads $threads --quiet
  [ ! -s out ] && [ ! -s err ] || fail 'quiet is not quiet'
  cmp -s sums.model again.model || fail "$threads threads give another model"
done
expect 0 "$pawl" train sparse-coding train.csv --atoms 8 --seed 2 -o csv.model --json
said '"model":"csv.model","atoms":8,"features":8,"rows":200,"lambda":0\.[0-9]*,"why":"converged","converged":true,"advice":null,'
expect 0 "$pawl" train sparse-coding bars-idx3 --patch 6 --patches 2000 --center --atoms 16 --test more-idx3 -o bars.model --json
said '"features":36,"rows":2000,.*"test_rows":2000,.*"centered":true'
expect 3 "$pawl" train sparse-coding small.cifar --format cifar --patch 8 --patches 100 --atoms 5 --epochs 1 -o cifar.model
said '^NOT converged: reached the limit of epochs after 1 epoch$'
complained 'cifar.model has NOT converged (epochs); try more --epochs'

# --- models and codes --------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" model show sums.model --top 2
said '^atoms  *8 of 8 features, 0 of them unused$'
said '^ *[1-8]  *[0-9]*  *[0-9.]* % [0-9]*:-*0\.'
expect 0 "$pawl" model show bars.model
said '^changed  *the mean of each row subtracted$'
expect 0 "$pawl" model show bars.model --json
said '"kind":"sparse-coding","atoms":16,.*"patch":6,.*"top":\[{"atom":'
expect 0 "$pawl" predict sums.model test.svm -o codes.svm --json
python3 - <<'END'
import json
figures, lines = json.load(open('out')), [line.split() for line in open('codes.svm')]
own = [line.split()[0] for line in open('test.svm')]
assert len(lines) == 60 and [line[0] for line in lines] == own, lines[:3]
places = [[int(part.split(':')[0]) for part in line[1:]] for line in lines]
assert all(p == sorted(set(p)) and all(1 <= i <= 8 for i in p) for p in places)
assert abs(sum(map(len, places)) / 60 - figures['nonzeros']) < 1e-9, figures
assert figures['rows'] == 60 and 0 < figures['error'] < 0.2 and figures['unsolved'] == 0, figures
END
expect 0 "$pawl" train multiclass codes.svm -o classes.model --quiet # codes are rows like any other
expect 0 "$pawl" predict csv.model bare.csv -o - # no labels: 0
said '^0 [1-8]:'
expect 0 "$pawl" predict bars.model more-idx3 -o tiles.svm
said '^rows  *40$'
[ "$(wc -l <tiles.svm)" -eq 40 ] || fail 'not a line for each of four tiles of ten images'
expect 0 "$pawl" model export bars.model -o bars.pgm
said '^wrote bars.pgm (pgm)$'
[ "$(head -c 2 bars.pgm)" = P5 ] || fail 'no PGM file'
expect 0 "$pawl" model export cifar.model -o cifar.ppm --json
said '"format":"ppm","atoms":5'
printf '1 1:1e-9\n2 99:1\n' >strange.svm
expect 0 "$pawl" predict sums.model strange.svm
complained 'every code is 0'
said '^unknown features  1 values$'

# --- checkpoints -------------------------------------------------------------------------------------------------------------------

run='--atoms 12 --lambda 0.02 --epochs 40 --batch 20 --tolerance 1e-7 --code-tolerance 1e-8'
# shellcheck disable=SC2086 # several words
expect 3 "$pawl" train sparse-coding train.svm $run -o whole.model --quiet
long='--atoms 12 --lambda 0.02 --epochs 100000000 --batch 20 --tolerance 1e-9 --code-tolerance 1e-10'
# shellcheck disable=SC2086
"$pawl" train sparse-coding train.svm $long -o long.model --checkpoint-every 1 --log long.jsonl >long.out 2>long.log &
trainer=$!
pids="$pids $trainer"
eventually test -s long.jsonl || fail 'the long run does not begin'
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
[ "$code" -eq 130 ] || fail "an interrupted run exits with $code: $(tail -n 3 long.log)"
grep -q 'the unfinished model was saved to long.model; continue with --resume' long.log || fail "no word about the model: $(tail -n 3 long.log)"
expect 0 "$pawl" predict long.model test.svm
# shellcheck disable=SC2086
expect 1 "$pawl" train sparse-coding train.svm $long --lambda 0.5 -o long.model --resume
complained 'cannot resume: long.model.checkpoint: this checkpoint belongs to another training: --lambda was 0.02'
# shellcheck disable=SC2086
"$pawl" train sparse-coding train.svm $run -o killed.model --checkpoint killed.state >killed.out 2>killed.log &
trainer=$!
pids="$pids $trainer"
eventually grep -q 'epoch 2/' killed.log || fail 'the run does not begin'
kill -KILL "$trainer" 2>/dev/null || true
wait "$trainer" || true
# shellcheck disable=SC2086
expect 3 "$pawl" train sparse-coding train.svm $run -o killed.model --checkpoint killed.state --resume --json
said '"why":"epochs",.*"epochs":40,'
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

refuses 1 'lambda 1e+09 makes every code 0, whatever the dictionary' train sparse-coding train.svm --lambda 1e9 -o no.model
refuses 2 'expected a number above 0: without a penalty codes are not sparse' train sparse-coding train.svm --lambda 0 -o no.model
printf '1 1:3 2:3\n2 1:1 2:1\n' >flat.svm
refuses 1 'every row is 0 once its mean has been subtracted' train sparse-coding flat.svm --center -o no.model
(cat train.svm; echo 'cat 1:nan') >bad.svm
refuses 1 'bad.svm:201:' train sparse-coding bad.svm -o no.model
(cat train.svm; echo 'cat 1:inf') >bad.svm
refuses 1 'bad.svm:201:' train sparse-coding bad.svm -o no.model
refuses 1 'nothing.svm' train sparse-coding nothing.svm -o no.model
refuses 1 'cannot write the model to nowhere' train sparse-coding train.svm -o nowhere/no.model
refuses 2 'patch is for images' train sparse-coding train.svm --patch 3 -o no.model
refuses 2 'give their size with --patch P' train sparse-coding bars-idx3 --patches 3 -o no.model
refuses 1 'a patch of 13 x 13 pixels is larger than the images of 12 x 12' train sparse-coding bars-idx3 --patch 13 -o no.model
refuses 2 'the files are images' train sparse-coding bars-idx3 --binary -o no.model
refuses 2 'at most half of the tolerance' train sparse-coding train.svm --tolerance 1e-5 -o no.model
refuses 1 'idx' predict bars.model test.svm
refuses 2 'sums.model is a dictionary; --scores' predict sums.model test.svm --scores -o no.model
refuses 1 'only atoms of images with 1 or 3 channels can be drawn' model export sums.model -o no.model
refuses 1 'cannot write nowhere/codes' predict sums.model test.svm -o nowhere/codes
head -c 600 sums.model >cut.model
refuses 1 'cut.model: ' predict cut.model test.svm
expect 0 "$pawl" train sparse-coding flat.svm --atoms 9 -o few.model
complained 'there are more atoms (9) than rows (2); some will stay unused'
said '^  unused atoms  *[78] at the end; unused atoms were replaced [0-9]* times*$'
