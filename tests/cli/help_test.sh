#!/bin/sh
# Every command explains itself, and a command line that is wrong is refused with a hint.
set -eu
pawl=${PAWL_COMMAND:?the path of the command}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

# expect CODE COMMAND…: the exit code; what was printed is in $work/out and $work/err.
expect() {
  wanted=$1
  shift
  code=0
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq "$wanted" ] || fail "'$*' exits with $code, not $wanted: $(cat "$work/err")"
}

said() { grep -q -e "$1" "$work/out" || fail "'$1' is not in: $(cat "$work/out")"; }
complained() { grep -q -e "$1" "$work/err" || fail "'$1' is not in: $(cat "$work/err")"; }

expect 0 "$pawl" --help
for word in 'usage:' 'exit codes' 'pawl demo' 'pawl env' 'pawl version' 'pawl key new' 'pawl key add' 'pawl key revoke' 'pawl key token' 'pawl sim demo' \
  'pawl manager' 'pawl server' 'pawl server drain' 'pawl server forget' 'pawl vector delete' 'pawl status' 'pawl get' 'pawl put' 'pawl space list' 'pawl space quota' '^  3  .*not converged' 'pawl checkpoint list' \
  'pawl sketch insert' 'pawl graph list' 'pawl graph show' 'pawl graph check' 'pawl predict' 'pawl model show' 'pawl model export' 'pawl train logistic' 'pawl train svm' \
  'pawl train linear' 'pawl train multiclass' 'pawl train lda' 'pawl train cnn' 'pawl train bpmf' 'pawl recommend' 'pawl worker' 'pawl convert' 'pawl lda topics' 'pawl lda infer'; do
  said "$word"
done
cp "$work/out" "$work/overview"
expect 0 "$pawl" help
cmp -s "$work/out" "$work/overview" || fail "'pawl help' differs from 'pawl --help'"

# explains COMMAND OPTION…: its help exits with 0 and names the options; `pawl help COMMAND` is the same.
explains() {
  command=$1
  shift
  # shellcheck disable=SC2086
  expect 0 "$pawl" $command --help
  for option in --help "$@"; do said "$option"; done
  [ "$(awk 'length > 78' "$work/out" | wc -l)" -eq 0 ] || fail "'pawl $command --help' is wider than 78 columns"
  cp "$work/out" "$work/help"
  # shellcheck disable=SC2086
  expect 0 "$pawl" help $command
  cmp -s "$work/out" "$work/help" || fail "'pawl help $command' differs from 'pawl $command --help'"
}

explains demo --all --data --seed --json --verbose --log-level
explains env --json
explains version --json
explains key priority 'pawl key new' 'pawl key add' 'pawl key revoke' 'pawl key token' 'pawl key show'
explains 'key new' --output --force --read-only --space --json
explains 'key show' --json FILE
explains manager --listen --advertise --http --data --new --first-servers --client-grace --key-file --certificate --private-key \
  --authority --require-encryption --transport --ready-fd --parent --meta --meta-authority --meta-certificate \
  --meta-private-key
explains server --join --listen --advertise --shards --memory --host --rack --http --drain-timeout --key-file \
  --require-encryption --ready-fd --parent
explains 'server drain' --wait --cluster --timeout --json 'NODE|ADDRESS'
explains 'server forget' --lose-data --cluster --timeout --json 'NODE|ADDRESS'
explains status --cluster --watch --timeout --json
explains get --list --limit --cluster --json KEY
explains put --file --create --type --width --size --function --placement --layout --cluster --json
explains sketch 'pawl sketch create' 'pawl sketch insert' 'pawl sketch query' 'pawl sketch top' 'pawl sketch distinct' \
  'pawl sketch list' 'pawl sketch drop'
explains 'sketch create' --kind --banks --depth --columns --window --windows --no-top --no-distinct --cluster --json
explains 'sketch insert' --from --weights --times --binary --top --distinct --no-aggregate --window --cluster --json
explains 'sketch query' --number --last --until --cluster --json KEY
explains 'sketch top' --last --until --cluster --json
explains 'sketch distinct' --last --until --cluster --json
explains 'sketch list' --cluster --json
explains 'sketch drop' --cluster --json
explains graph 'pawl graph list' 'pawl graph show' 'pawl graph check'
explains 'graph list' --json
explains 'graph show' --nodes --degree --racks --seed --tries --weights --bytes --svg --save --json NAME
explains 'graph check' --nodes --racks --weights --bytes --svg --save --json FILE
explains predict --output --scores --probabilities --format --label --hash-bits --binary --unit-rows --skip-bad --threads --l1 --l2 \
  --json 'MODEL DATA'
explains model 'pawl model show' 'pawl model export'
explains 'model show' --top --vocabulary --json MODEL
explains 'model export' --output --format --json MODEL
explains lda 'pawl lda topics' 'pawl lda infer' 'pawl lda evaluate' 'pawl lda export'
explains 'lda topics' --top --topic --sort --data --vocab --format --skip-bad --threads --json MODEL
explains 'lda infer' --top --all --output --alpha --iterations --vocab --format --skip-bad --threads --json 'MODEL DATA'
explains 'lda evaluate' --alpha --iterations --seed --vocab --format --skip-bad --threads --json 'MODEL DATA'
explains 'lda export' --output --counts --json MODEL
explains convert --output --format --hash-bits --label --vocab --binary --unit-rows --skip-bad --threads --json INPUT
explains train 'pawl train logistic' 'pawl train svm' 'pawl train linear' 'pawl train multiclass' 'pawl train lda' 'pawl train cnn' 'pawl train bpmf' \
  'pawl train sparse-coding' 'pawl train metric'
explains 'train logistic' --l1 --l2 --workers --servers --replicas --tau --blocks --no-bias --valid --output --cluster --method \
  --class-weight --start --early-stop --rounds --epochs --passes --tolerance --rate --minibatch --seed --no-kkt --binary --unit-rows --scale \
  --format --hash-bits --label --skip-bad --threads --on-worker-loss --drop-slowest --checkpoint --checkpoint-every --resume --log \
  --tensorboard --job --model-format --json --quiet --key-file DATA
explains 'train svm' --loss --l1 --class-weight --json
explains 'train linear' --l1 --cluster --json
explains 'train lda' --topics --output --vocab --held-out --alpha --beta --optimise --start --method --sweeps --passes --staleness \
  --memory --seed --measure-every --evaluate-every --check --batch --kappa --offset --format --skip-bad --min-documents --max-share \
  --max-words --stop --workers --threads --servers --replicas --cluster --job --dir --keep-dir --resume --log --tensorboard --json \
  --quiet --key-file DATA
explains 'train cnn' '--share factors' --model --output --test --format --epochs --batch --rate --schedule --momentum --decay --seed --threads \
  --share --graph --mode --average --log --json --quiet FILE
explains 'train multiclass' --l2 --no-bias --output --test --format --label --separator --hash-bits --binary --unit-rows --skip-bad \
  --method --epochs --tolerance --batch --rate --schedule --seed --threads --checkpoint --checkpoint-every --resume --log --json --quiet
explains 'train sparse-coding' --atoms --lambda --output --patch --patches --center --unit-rows --test --format --label --separator \
  --hash-bits --binary --skip-bad --epochs --tolerance --code-tolerance --batch --seed --threads --checkpoint --checkpoint-every --resume \
  --log --json --quiet
explains 'train metric' --rank --k --output --test --valid-split --format --label --separator --hash-bits --binary --unit-rows \
  --skip-bad --neighbours --margin --weight --epochs --rate --batch --seed --threads --log --json --quiet
explains 'train bpmf' --rank --alpha --keep --output --test --test-split --format --duplicates --skip-bad --iterations --burn-in --seed \
  --threads --no-train-rmse --checkpoint --checkpoint-every --resume --log --json --quiet FILE
explains recommend --top --titles --json 'MODEL USER'
explains worker --cluster --job --wait --listen --rack --key-file
explains checkpoint 'pawl checkpoint list' 'pawl checkpoint verify' 'pawl checkpoint export'
explains 'checkpoint list' --json DIR/NAME
explains 'checkpoint verify' --json DIR/NAME
explains 'checkpoint export' --format --json FILE
explains sim 'pawl sim demo' 'pawl sim faults' 'pawl sim explore' 'pawl sim mlnet' 'pawl sim osdi' 'pawl sim scale'
explains 'sim demo' --seed --bug --json
explains 'sim faults' --seeds --seed --replicas --managers --jobs --bug --json
explains 'sim mlnet' --figure --svg --json --workers --servers --models --rounds --interval --bytes --calibrate --aggregation \
  --ports --rate --over --tier --ecmp --incast --loss --grain --seed
explains 'sim osdi' --figure --svg --json --seed --tau --by-worker --workers --blocks --rate --machines --link --users --tokens \
  --words --row-bytes --sampling --servers --pair-bits --items --gap --seconds
explains 'sim scale' --nodes --servers --limit --json
explains 'sim explore' --scenario --servers --replicas --clients --pushes --crash --reset --early --merge --states --replay --bug --json

# refuses HINT ARGUMENT…: exit code 2, nothing on standard output, HINT and where to read more on standard error.
refuses() {
  hint=$1
  shift
  expect 2 "$pawl" "$@"
  complained "$hint"
  [ ! -s "$work/out" ] || fail "'$*' is refused and prints: $(cat "$work/out")"
  complained "^try 'pawl.* --help'"
}

refuses 'no command given'
refuses "did you mean 'train'" tarin
refuses "did you mean 'env'" evn --json
refuses "unknown command 'frobnicate'" frobnicate
refuses "unknown command 'frobnicate'" help frobnicate
refuses "did you mean '--help'" --hepl
refuses "did you mean 'new'" key nwe
refuses 'no command given' key
refuses 'no command given' sim
refuses "did you mean '--json'" env --jsno
refuses "unknown option '-x'" env -x
refuses 'unexpected argument' env here
refuses 'takes no value' version --json=yes
refuses 'needs a value' sim demo --seed
refuses 'whole number' sim demo --seed seven
refuses 'whole number' demo --seed -1
refuses 'log level' --log-level loud env
refuses 'missing argument; expected FILE' key show
refuses 'for --space; expected at most' key new --space a/b
refuses 'no manager given' server
refuses 'unexpected argument' manager here
refuses 'for --first-servers; expected a number of servers' manager --first-servers 0
refuses 'seconds' manager --client-grace soon
refuses 'an open file descriptor' manager --ready-fd 987
refuses 'a process ID' manager --parent 0
refuses 'auto, tcp or rdma' manager --transport pigeon
refuses 'must be given together' manager --certificate a.pem
refuses 'exclude each other' manager --certificate a --private-key b --authority c --key-file d
refuses 'number of shards' server --join x:1 --shards 0
refuses 'a size, e.g.' server --join x:1 --memory 8GB
refuses 'seconds' server --join x:1 --drain-timeout -1
refuses 'seconds' status --watch 0
refuses 'missing argument; expected .*SPACE/NAME' get
refuses 'whole number' get a/b --limit many
refuses 'unexpected argument' get a/b 1 2
refuses 'nothing to put' put a/b
refuses 'need --create' put a/b --width 2 1=1
refuses 'f32, f64' put a/b --create --type f16
refuses 'missing argument; expected INPUT' convert
refuses 'no output file given; name one with -o FILE' convert a
refuses 'libsvm, vw' convert a -o b --format arff
refuses 'from 1 to 62' convert a -o b --hash-bits 63
refuses 'from 1 to 1024' convert a -o b --threads 0
refuses 'build/pawl-bench net' bench net --json
refuses 'make bench' bench
refuses 'missing argument; expected DIR/NAME' checkpoint verify
refuses 'unknown output format' checkpoint export a/b c/d e.txt
refuses 'unknown output format' checkpoint export a/b c/d e.npy --format csv
refuses 'is not a checkpoint; expected DIR/NAME' checkpoint verify /

expect 0 "$pawl" --version
said '^pawl [0-9]'
cp "$work/out" "$work/version"
expect 0 "$pawl" version
cmp -s "$work/out" "$work/version" || fail "'pawl --version' differs from 'pawl version'"

# The log is quiet unless it is asked for, and never in the way of the output.
expect 0 "$pawl" sim demo --seed 1
[ ! -s "$work/err" ] || fail "a run without faults in the program logs: $(cat "$work/err")"
said 'acknowledged, 0 lost'
[ "$(awk 'length > 100' "$work/out" | wc -l)" -eq 0 ] || fail 'a line is longer than 100 columns'
expect 0 "$pawl" -v sim demo --seed 1
complained ' info sim sim.fault '
expect 0 env PAWL_LOG_LEVEL=info "$pawl" sim demo --seed 1
complained ' info sim sim.fault '
if grep -q "$(printf '\033')" "$work/out"; then fail 'colours on what is not a terminal'; fi

# Where nobody reads, or nobody can write, that is what is said.
if [ -w /dev/full ]; then
  code=0
  "$pawl" env >/dev/full 2>"$work/err" || code=$?
  [ "$code" -eq 1 ] || fail "a full disk is not noticed: $code"
  complained 'cannot write'
fi
