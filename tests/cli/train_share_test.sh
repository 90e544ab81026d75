#!/bin/sh
# Methods whose workers share parameters by servers or by reduce: one process and several give the same net; workers that die; options
# that do not fit together.
# timeout: 600
# cost: 30
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Images of 16 x 16 pixels with a bright bar, whose place is the label.
python3 - <<'END'
import random, struct
random.seed(7)
for name, count in (('train', 120), ('test', 80)):
    labels = bytes(random.randrange(4) for _ in range(count))
    pixels = bytes(random.randrange(120) + (110 if at // 64 == label else 0) for label in labels for at in range(256))
    open(name + '-images', 'wb').write(struct.pack('>4I', 0x803, count, 16, 16) + pixels)
    open(name + '-labels', 'wb').write(struct.pack('>2I', 0x801, count) + labels)
END
cnn='train cnn --model lenet train-images train-labels'
tested='--test test-images --test test-labels'

# near A B: two numbers differ by at most 2 %, or 0.001.
near() {
  awk -v a="$1" -v b="$2" 'BEGIN { d = a < b ? b - a : a - b; exit !(d <= 0.001 || d <= 0.02 * (b < 0 ? -b : b)) }' ||
    fail "$1 is not near $2"
}

# --- nets on servers -----------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # several words
expect 0 "$pawl" $cnn $tested --epochs 2 --batch 16 --rate 0.001 -o alone.model --json
alone=$(figure loss)
# shellcheck disable=SC2086
expect 0 "$pawl" $cnn $tested --epochs 2 --batch 16 --rate 0.001 -o shared.model --json --workers 2 --log shared.jsonl
near "$(figure loss)" "$alone"
said '"share":"servers","workers":2,"workers_lost":0,"wait_pct":[0-9.]*,"bytes_sent":[1-9]'
said '"steps":16,'
[ "$(wc -l <shared.jsonl)" -eq 2 ] || fail 'the log has not two lines'
expect 0 "$pawl" predict shared.model test-images test-labels

# shellcheck disable=SC2086
expect 0 "$pawl" $cnn --epochs 1 --batch 16 -o one.model --share servers --workers 1
said '^  workers  *1 finished, 0 lost; shared by servers, waited [0-9.]* %$'
said '^  network  .* sent, .* received by workers$'

# Modes of pushes: bsp is the default.
for mode in bsp notify-ack async; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $cnn $tested --epochs 2 --batch 16 --rate 0.001 -o $mode.model --json --workers 2 --share servers --mode $mode
  said '"share":"servers","workers":2,"workers_lost":0'
  said '"steps":16,'
  [ $mode != bsp ] || near "$(figure loss)" "$alone"
  expect 0 "$pawl" predict $mode.model test-images test-labels
done

# shellcheck disable=SC2086
expect 1 "$pawl" $cnn --rate 1e10 -o no.model --workers 2
complained 'the training diverged in epoch 1, step [0-9]*: the loss is not finite; use a lower learning rate than 1e+10'
[ ! -e no.model ] || fail 'a run that diverged writes a model'

# A worker that is killed is replaced; Ctrl-C ends the run and saves the model.
long="$cnn --epochs 1000000 --batch 16 --rate 0.001 --share servers"
for mode in bsp notify-ack async; do
  set_out killed-$mode --workers 2 --mode $mode
  victim=$(children "$trainer" worker | head -n 1)
  kill -9 "$victim"
  eventually sh -c "grep -c ' joined; ' killed-$mode.log | grep -q '^[3-9]'" || fail "nobody came: $(cat killed-$mode.log)"
  goes_on killed-$mode.jsonl
  kill -INT "$trainer"
  ends 130
  grep -q "worker $victim at .* was lost" killed-$mode.log || fail "no word about the lost worker: $(cat killed-$mode.log)"
  grep -q "the unfinished model was saved to killed-$mode.model" killed-$mode.log || fail "no word about the model: $(cat killed-$mode.log)"
  grep -q '^  workers  *2 finished, 1 lost' killed-$mode.out || fail "the summary: $(cat killed-$mode.out)"
  expect 0 "$pawl" predict killed-$mode.model test-images test-labels
done

# Workers that find other images than the scheduler refuse. Their reason is printed once, whether the scheduler hears of it
# or of the end of the process first.
cat >pawl-other-images <<END
#!/bin/sh
[ "\$1" != worker ] || printf X | dd of=$work/changing-images bs=1 seek=100 conv=notrunc 2>/dev/null
exec $pawl "\$@"
END
chmod +x pawl-other-images
for _ in 1 2 3 4 5; do
  cp train-images changing-images
  PAWL_COMMAND=$work/pawl-other-images expect 1 "$pawl" train cnn --model lenet changing-images train-labels -o no.model --workers 2
  [ "$(grep -c "differ from the scheduler's" err)" -eq 1 ] || fail 'the reason is not printed once'
done

# refuses TEXT ARGUMENT…: a wrong command line.
refuses() {
  text=$1
  shift
  # shellcheck disable=SC2086
  expect 2 "$pawl" $cnn -o no.model "$@"
  complained "$text"
}
refuses "invalid value 'mpi' for --share; expected servers, reduce, factors, auto or none" --share mpi
refuses '--graph needs --share reduce' --share servers --workers 2 --graph root
refuses "invalid value 'ssp' for --mode; expected notify-ack, bsp or async" --share servers --workers 2 --mode ssp
refuses '--share reduce uses no servers' --share reduce --workers 2 --servers 2
refuses 'one process needs no servers' --servers 2
refuses 'gradients can be averaged on the complete graph' --workers 2 --graph ring --average gradients

# --- nets by reduce ------------------------------------------------------------------------------------------------

# Gradients that are averaged on the complete graph give the steps of one process. No server is started.
# shellcheck disable=SC2086
expect 0 "$pawl" $cnn $tested --epochs 2 --batch 16 --rate 0.001 -o mean.model --json --workers 2 --share reduce --graph complete
near "$(figure loss)" "$alone"
said '"share":"reduce","workers":2,"workers_lost":0'
for how in 'root' 'ring --mode bsp' 'root --mode async'; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $cnn $tested --epochs 3 --batch 16 --rate 0.001 -o mixed.model --workers 3 --graph $how
  said '^  workers  *3 finished, 0 lost; shared by reduce, waited [0-9.]* %$'
  expect 0 "$pawl" predict mixed.model test-images test-labels
done

# Survivors go on without a worker that is killed.
long="$cnn --epochs 1000000 --batch 16 --rate 0.001"
set_out survived --workers 3 --share reduce --graph root
children "$trainer" server | grep . && fail 'reduce starts a server'
victim=$(children "$trainer" worker | head -n 1)
kill -9 "$victim"
eventually grep -q "worker $victim at .* was lost" survived.log || fail "no word about the lost worker: $(cat survived.log)"
goes_on survived.jsonl
kill -INT "$trainer"
ends 130
grep -q '^  workers  *2 finished, 1 lost; shared by reduce' survived.out || fail "the summary: $(cat survived.out)"
expect 0 "$pawl" predict survived.model test-images test-labels
# shellcheck disable=SC2086
expect 1 "$pawl" $cnn --rate 1e10 -o no.model --workers 2 --share reduce
complained 'the training diverged in epoch 1, step [0-9]*: the loss is not finite'
# shellcheck disable=SC2086
expect 1 "$pawl" $cnn -o no.model --workers 2 --share reduce --graph spiral
complained "spiral"

# --- nets by factors -----------------------------------------------------------------------------------------------

# Full layers send pairs of vectors, and the steps are those of one process. No server is started.
# shellcheck disable=SC2086
expect 0 "$pawl" $cnn $tested --epochs 2 --batch 16 --rate 0.001 -o factors.model --json --workers 2 --share factors
near "$(figure loss)" "$alone"
said '"share":"factors","workers":2,"workers_lost":0'
said '"layers_as_factors":1,"update_bytes":[1-9][0-9]*,"identical":true'
# shellcheck disable=SC2086
expect 0 "$pawl" $cnn --epochs 1 --batch 16 --rate 0.001 -o auto.model --workers 2 --share auto
complained '^--share auto: factors; a step of 2 workers sends [0-9.]*kB as factors and [0-9.]*kB by servers$'
said '^  gradients  *[0-9.]*.*B in [0-9]* steps, of 1 layer as factors; parameters identical, bit by bit$'

# A worker that comes for one that was killed takes over parameters and momentum of another.
set_out factored --workers 3 --share factors
children "$trainer" server | grep . && fail 'factors start a server'
kill -9 "$(children "$trainer" worker | head -n 1)"
eventually grep -q '; 3 now$' factored.log
goes_on factored.jsonl
eventually sh -c "grep -c ' joined; ' factored.log | grep -q '^[4-9]'" || fail "nobody came: $(cat factored.log)"
goes_on factored.jsonl
kill -INT "$trainer"
ends 130
grep -q '^  workers  *3 finished, 1 lost; shared by factors' factored.out || fail "the summary: $(cat factored.out)"
grep -q 'parameters identical, bit by bit$' factored.out || fail "the summary: $(cat factored.out)"
expect 0 "$pawl" predict factored.model test-images test-labels
# shellcheck disable=SC2086
expect 1 "$pawl" $cnn --rate 1e10 -o no.model --workers 2 --share factors
complained 'the training diverged in epoch 1, step [0-9]*: the loss is not finite'
refuses '--share factors uses no servers' --share factors --workers 2 --servers 2
refuses 'with factors everyone sends to everyone in each step' --share factors --workers 2 --mode async
refuses '--graph needs --share reduce' --share factors --workers 2 --graph ring
refuses '--share auto compares bytes for a number of workers' --share auto --workers 0 --cluster 127.0.0.1:1

# --- a graph from a file -------------------------------------------------------------------------------------------

# The net is that of the same graph by its name, and that of another graph differs. A worker looks for the file where the command
# does, also if that was given a relative path.
expect 0 "$pawl" graph show ring --nodes 3 --save ring3.graph
expect 0 "$pawl" graph show ring --nodes 4 --save ring4.graph
for graph in ring3.graph ring complete; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $cnn --epochs 1 --batch 16 --rate 0.001 -o $graph.model --workers 3 --graph $graph --average models
done
cmp ring3.graph.model ring.model || fail 'a ring from a file gives another net than a ring'
! cmp -s ring.model complete.model || fail 'another graph gives the same net'

# refuses_graph TEXT ARGUMENT…: a graph that does not fit is refused before any worker is started.
refuses_graph() {
  text=$1
  shift
  # shellcheck disable=SC2086
  expect 1 "$pawl" $cnn -o no.model --share reduce "$@"
  complained "$text"
  ! grep joined err || fail 'workers are started for a graph that does not fit'
  expect 1 "$pawl" train svm train.svm -o no.model --method sgd --share reduce "$@"
  complained "$text"
  ! grep joined err || fail 'workers are started for a graph that does not fit'
}
printf '1 1:1\n-1 1:2\n' >train.svm
printf 'nodes 3\n0: 1\n1: 2\n' >open.graph
printf 'nodes 3\n0: one\n' >bad.graph
refuses_graph 'ring4.graph has 4 nodes; expected 3, one for each member; change the number of workers, or the graph' \
  --workers 3 --graph ring4.graph
refuses_graph 'ring4.graph has 4 nodes; expected 2 to 3, one for each member' --workers 2:3 --graph ./ring4.graph
refuses_graph 'open.graph is not strongly connected: there is no path from node [12] to node [01]' --workers 3 --graph open.graph
refuses_graph 'bad.graph:2: ' --workers 3 --graph bad.graph
refuses_graph 'none.graph' --workers 3 --graph none.graph
refuses_graph 'graph hypercube: ' --workers 3 --graph hypercube
[ ! -e no.model ] || fail 'a graph that does not fit gives a model'

# --- linear models by reduce ---------------------------------------------------------------------------------------

python3 - <<'END'
import random
random.seed(3)
with open('rows.svm', 'w') as file:
    for i in range(4000):
        x = {j: random.gauss(0, 1) for j in random.sample(range(1, 41), 8)}
        z = sum(v * (j % 3 - 1) for j, v in x.items()) + random.gauss(0, 0.5)
        print(1 if z > 0 else -1, *(f'{j}:{v:.4f}' for j, v in sorted(x.items())), file=file)
END
expect 0 "$pawl" train svm rows.svm --method dual --workers 1 --no-bias -o best.model --json
best=$(figure objective)
sgd='train svm rows.svm --no-bias --unit-rows --method sgd --minibatch 50'
# shellcheck disable=SC2086
expect 0 "$pawl" train svm rows.svm --no-bias --method sgd --minibatch 50 --rate 0.5 --schedule cosine --passes 20 --share reduce \
  --graph complete --workers 2 -o reduced.model --json
awk -v is="$(figure objective)" -v best="$best" 'BEGIN { exit !(is < 1.05 * best) }' || fail "$(figure objective) instead of $best"
said '"share":"reduce","workers":2,"workers_lost":0'
expect 0 "$pawl" predict reduced.model rows.svm
# shellcheck disable=SC2086
expect 0 "$pawl" $sgd --passes 3 --share reduce --graph ring3.graph --workers 3 -o file.model --json
said '"share":"reduce","workers":3,"workers_lost":0'

# The model is that of the survivors, and the objective that of all rows.
long="$sgd --passes 1000000"
set_out averaged --workers 3 --share reduce --graph root
victim=$(children "$trainer" worker | head -n 1)
kill -9 "$victim"
eventually grep -q "worker $victim at .* was lost" averaged.log || fail "no word about the lost worker: $(cat averaged.log)"
goes_on averaged.jsonl
kill -INT "$trainer"
ends 130
grep -q '^  workers  *2 finished, 1 lost; shared by reduce' averaged.out || fail "the summary: $(cat averaged.out)"
grep -q '^  accuracy  .* of 4000 rows' averaged.out || fail "not all rows: $(cat averaged.out)"
expect 0 "$pawl" predict averaged.model rows.svm

# refuses_svm TEXT ARGUMENT…: a wrong command line.
refuses_svm() {
  text=$1
  shift
  expect 2 "$pawl" train svm rows.svm -o no.model "$@"
  complained "$text"
}
refuses_svm '--share reduce needs --method sgd' --share reduce --method dual
refuses_svm '--graph and --mode need --share reduce' --method sgd --graph root
refuses_svm 'need --share reduce' --method sgd --schedule cosine
expect 1 "$pawl" train svm rows.svm -o no.model --method sgd --share reduce --workers 2 --resume
complained 'cannot resume from .*no.model.checkpoints: No such file'
refuses_svm 'give --share servers or reduce' --share none
refuses_svm 'omit --servers and --replicas' --method sgd --share reduce --servers 2
