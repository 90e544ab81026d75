#!/bin/sh
# Convolutional nets from the command line: training, what is shown, logged and written, prediction; good input and bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Images of 16 x 16 pixels with a bright bar, whose place is the label: as idx, with and without compression. And images of
# CIFAR's size with a bright channel.
python3 - <<'END'
import gzip, random, struct
random.seed(7)

def idx(name, count, classes):
    labels = bytes(random.randrange(classes) for _ in range(count))
    pixels = bytes(random.randrange(120) + (110 if at // 64 == label else 0) for label in labels for at in range(256))
    return struct.pack('>4I', 0x803, count, 16, 16) + pixels, struct.pack('>2I', 0x801, count) + labels

for name, count in (('train', 240), ('test', 80)):
    images, labels = idx(name, count, 4)
    open(name + '-images', 'wb').write(images)
    open(name + '-labels', 'wb').write(labels)
    gzip.open(name + '-images.gz', 'wb').write(images)
with open('data_batch_1.bin', 'wb') as file:
    for i in range(24):
        label = i % 3
        file.write(bytes([label]))
        for channel in range(3):
            file.write(bytes(random.randrange(100) + (120 if channel == label else 0) for _ in range(1024)))
END

# --- training ----------------------------------------------------------------------------------------------------------------------

train='train cnn --model lenet train-images train-labels'
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" $train --test test-images.gz --test test-labels --epochs 3 --batch 16 -o bars.model --log bars.jsonl
said '^done after 3 epochs$'
said '^  net  *lenet, with [0-9]* parameters$'
said '^  images  *240 of 1 x 16 x 16, in 4 classes$'
said '^  loss  *[0-9.]*, error [0-9.]* %, of the training images'
said '^  test error  *[01]\.[0-9]* % of 80 images$'
said '^  time  .* training, .* images/s$'
said '^  model  *bars.model$'
said '^next:  pawl predict bars.model '
complained '^epoch 1/3  loss [0-9.]*  test error [0-9.]* %  .* images/s'
complained '^epoch 3/3  '
[ "$(wc -l <bars.jsonl)" -eq 3 ] || fail 'the log has not three lines'
grep -q '"epoch":3,.*"test_error":0' bars.jsonl || fail "the log: $(cat bars.jsonl)"

# Steps that are too short: the net is as it was drawn. The model is written, and the exit code is no success.
# shellcheck disable=SC2086
expect 3 "$pawl" $train --epochs 1 --rate 1e-12 -o guess.model
said '^NO BETTER THAN GUESSING after 1 epoch$'
complained '^guess.model is NO BETTER THAN GUESSING, whose loss is 1\.3[0-9]*; try a lower --rate'
# shellcheck disable=SC2086
expect 3 "$pawl" $train --epochs 1 --rate 1e-12 -o guess.model --json
said '"why":"guessing","epochs":1,'
said '"guess_loss":1\.3'
# shellcheck disable=SC2086
expect 3 "$pawl" $train --epochs 1 --rate 1e-12 -o guess.model --quiet
complained 'guess.model is NO BETTER THAN GUESSING'
[ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "quiet is not quiet: $(cat out err)"
python3 -c "import struct; open('same-labels', 'wb').write(struct.pack('>2I', 0x801, 240) + bytes([2]) * 240)"
expect 1 "$pawl" train cnn --model lenet train-images same-labels -o no.model
complained 'all 240 images have the label 2; training needs two'
[ ! -e no.model ] || fail 'images of one label give a model'

# The same seed gives the same model, another one another; the name of the model is that of the data.
# shellcheck disable=SC2086
expect 0 "$pawl" $train --test test-images --test test-labels --epochs 3 --batch 16 -o again.model --quiet
[ ! -s out ] && [ ! -s err ] || fail 'quiet is not quiet'
cmp -s bars.model again.model || fail 'the same seed gives another model'
# shellcheck disable=SC2086
expect 0 "$pawl" $train --epochs 1 --seed 2 --schedule constant --momentum 0 --decay 0 --rate 0.005 --json
said '"model":"train-images.model","net":"lenet","parameters":[0-9]*,"images":240,"test_images":0,"why":"epochs","epochs":1,"steps":4,'
said '"test_error":null,'
said '"batch":64,"rate":0.005,"momentum":0.0,"decay":0.0,"seed":"2",'
cmp -s bars.model train-images.model && fail 'another seed gives the same model'

expect 0 "$pawl" train cnn --model vgg 'data_batch_*.bin' --test data_batch_1.bin --epochs 3 --batch 8 --rate 0.001 -o colours.model --threads 1
said '^  images  *24 of 3 x 32 x 32, in 3 classes$'

# --- prediction ----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" predict bars.model test-images test-labels
said '^images  *80$'
said '^accuracy  *\(9[89]\|100\)\.[0-9]* %$'
said '^error  *[01]\.[0-9]* %: [01] images are wrong$'
said '^loss  *[0-9.]'
expect 0 "$pawl" predict bars.model test-images.gz test-labels --json -o classes --format idx
said '^{"images":80,"wrong":[01],"error":[0-9.]*,"accuracy":[0-9.]*,"loss":[0-9.e-]*}$'
[ "$(wc -l <classes)" -eq 80 ] || fail 'not a line for each image'
tail -c +9 test-labels | od -An -v -tu1 -w1 | tr -d ' ' >labels
[ "$(paste -d' ' labels classes | awk '$1 != $2' | wc -l)" -le 1 ] || fail 'the predictions are wrong'
expect 0 "$pawl" predict bars.model test-images -o - --probabilities
[ "$(awk 'NF == 5 && $2 + $3 + $4 + $5 > 0.999 && $($1 + 2) >= 0.25' out | wc -l)" -eq 80 ] || fail "no probabilities: $(head -n 3 out)"
expect 0 "$pawl" predict bars.model test-images
complained 'the images have no labels'
expect 0 "$pawl" model show bars.model
said '^net  *lenet, a convolutional net of [0-9]* parameters$'
said '^  conv1.weights  *20 x 1 x 5 x 5  *norm '
expect 0 "$pawl" model show bars.model --json
said '"kind":"cnn"'

# --- bad input -----------------------------------------------------------------------------------------------------------------------

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

refuses 2 'no net was named; give --model lenet or --model vgg' train cnn train-images train-labels -o no.model
refuses 2 "unknown net 'alexnet'; expected lenet or vgg" train cnn --model alexnet train-images train-labels -o no.model
refuses 2 "invalid value '1' for --momentum; expected a number from 0 to below 1" train cnn --model lenet train-images train-labels --momentum 1
refuses 2 "invalid value '0' for --rate" train cnn --model lenet train-images train-labels --rate 0
refuses 2 "invalid value 'csv' for --format; expected idx or cifar" train cnn --model lenet train-images train-labels --format csv
refuses 2 'FILE' train cnn --model lenet
refuses 1 'train-images: images without labels; name their file of labels' train cnn --model lenet train-images -o no.model
refuses 1 'test-labels: 80 labels, but train-images has 240 images' train cnn --model lenet train-images test-labels -o no.model
refuses 1 'nothing: No such file' train cnn --model lenet nothing -o no.model
head -c 1000 train-images >cut
refuses 1 'cut: the header promises 61440 bytes, but only 984 follow' train cnn --model lenet cut train-labels -o no.model
refuses 1 'the training diverged in epoch 1, step [0-9]*: the loss is not finite; use a lower learning rate than 1e+10' \
  train cnn --model lenet train-images train-labels --rate 1e10 -o no.model
refuses 1 'the net was made for 1 x 16 x 16' train cnn --model lenet train-images train-labels --test data_batch_1.bin -o no.model
refuses 1 'cannot write the model' train cnn --model lenet train-images train-labels -o /nonexistent/no.model
refuses 1 'the images have 3 x 32 x 32 values' predict bars.model data_batch_1.bin
refuses 2 'is a convolutional net; of the options only' predict bars.model test-images --hash-bits 20
refuses 2 'idx and cifar are formats of images' predict cut test-images --format idx
head -c 5000 bars.model >cut.model
refuses 1 'cut.model: the file ends too early' predict cut.model test-images
refuses 1 "this is a model of kind 'cnn', not a linear model" model export bars.model -o no.liblinear

# --- Ctrl-C ------------------------------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
"$pawl" $train --epochs 1000000 -o long.model --log long.jsonl >long.out 2>long.log &
trainer=$!
pids="$pids $trainer"
eventually test -s long.jsonl || fail 'the long run does not begin'
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
[ "$code" -eq 130 ] || fail "an interrupted run exits with $code"
grep -q 'the unfinished model was saved to long.model' long.log || fail "no word about the model: $(cat long.log)"
expect 0 "$pawl" predict long.model test-images test-labels
