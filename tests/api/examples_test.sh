#!/bin/sh
# Every example runs without a cluster, and prints what it says it does.
set -eu
examples=$PAWL_BUILD/examples
output=$(mktemp)
trap 'rm -f "$output"' EXIT
unset PAWL_ADDRESS

# run NAME [ARGUMENT]... -- TEXT: the program succeeds and prints the text.
run() {
  name=$1
  shift
  arguments=
  while [ "$1" != -- ]; do
    arguments="$arguments $1"
    shift
  done
  # shellcheck disable=SC2086
  if ! "$examples/$name" $arguments >"$output" 2>&1 || ! grep -qF "$2" "$output"; then
    echo "examples/$name$arguments should print '$2':"
    cat "$output"
    exit 1
  fi
}

run hello -- 'key 8000000000 holds 1'
run ranges -- 'row 501: 501 501.1 501.2 501.3'
run ranges -- 'too far: pull from ranges/matrix: [998, 1002) reaches beyond the span [0, 1000)'
run conjugate -- 'the highest x is 10.000000, and A x is b'
run proximal -- '8 of 400 weights are not zero, their sum is 14.83'
run lists -- '10000 keys, 100 rounds: the first holds 100, the last 100'
run tasks -- '100 pulls, each of them saw 100'
run tasks -- 'refused: push to tasks/sums: key 7 at position 2 is not above the one before'
run groups -- 'round 2: 4 workers, sum 12'
run peers -- 'rank 0: sum 14; then 3 peers, sum 14, the last one is in rack north'
run reduce -- 'worker 3: y = 3.0 x -1.0'
run collective -- 'worker 3: y = 3.0 x -1.0, went on'
run collective -- 'the models of the others are the same, bit by bit'
run factor -- 'the matrices of the others are the same, bit by bit'
run factor_rows -- '600 words, 300 rows in each worker: 0 counts are wrong'
run items -- '4 workers, 300 iterations: the numbers are equal'
run lapser -- '1 processes, 60 iterations: the largest error is 0.000000'
run optimiser -- 'y = 2.00 + 3.00 x1 + -1.00 x2'
run operand -- '0 values differ; factors took less than a tenth of the bytes'
run group_push -- '4 workers, 20 rounds: w is 2.500'
run after -- '1 + 2 + 3 + 4 + 5 is 15'
run after -- 'push to after/sums: waits for call'
run after -- 'task reading the data, failed: ends too early'
run policy_window -- '50 iterations, 50 finished'
run policy_window eventual -- '50 iterations, 50 finished'
run filter_clip -- 'held back: '
run filter_clip -- 'held back: 1'
run destination -- 'the mean of 3 copies: 2 2 3 4'
run calls -- '3 workers, sum of squares 1.01505e+06'
run calls -- 'after tick 1: 103'
run calls -- 'call of fly at node'
run job -- 'round 1: 3 workers, sum 499500'
run job -- 'a worker was lost, 2 are left'
run job -- 'round 3: 2 workers, sum 249500250000'
run job -- 'workers, sum 199500333333300'
run sketch -- '1. word1: 100000'
run sketch -- 'word10: 100'
run filters -- 'significant: 50 of 50000 rows sent, 999 held'
run filters -- 'after it: 5495'
# shellcheck disable=SC3043 # the name of an example
run local -- 'at the servers: 0 0 0'

run linear_model -- 'converged after'
run linear_model -- '2000 rows, accuracy 0.9'

folder=$(mktemp -d)
for line in 1 2 3 4 5 6 7 8 9 10; do
  echo "the cat and the dog ate the fish $line"
  echo "stocks and bonds fell as rates rose $line"
done >"$folder/pages.txt"
run topics "$folder/pages.txt" 2 2 20 -- '20 documents, '
run topics "$folder/pages.txt" 2 2 20 -- 'the counts are exact'
rm -r "$folder"

# Two features that tell two kinds of examples apart, and one that says nothing: the objective falls from log 2.
folder=$(mktemp -d)
children=
# shellcheck disable=SC2086 # one word per process
trap 'kill $children 2>/dev/null; rm -rf "$output" "$folder"' EXIT
for i in 1 2 3 4 5 6 7 8; do printf '+1 3:1 7:%d\n-1 5:1 7:%d\n' "$i" "$i"; done >"$folder/data.svm"
run logistic "$folder/data.svm" -- 'iteration  0: objective 0.69315'

# The same by two processes at a cluster: the same objective, whoever computes which part of it.
started() { # FILE: the address in the line that a process says when it is ready
  for _ in $(seq 2000); do
    if grep -q '^ready' "$1" 2>/dev/null; then
      sed -n 's/^ready address=//p' "$1"
      return 0
    fi
    sleep 0.1
  done
  echo "no process got ready: $1" >&2
  exit 1
}
"$PAWL_COMMAND" manager --listen 127.0.0.1:0 --http none --ready-fd 3 3>"$folder/manager" >/dev/null &
children="$!"
address=$(started "$folder/manager")
"$PAWL_COMMAND" server --join "$address" --join-timeout 200 --http none --ready-fd 3 3>"$folder/server" >/dev/null &
children="$children $!"
started "$folder/server" >/dev/null
PAWL_ADDRESS=$address "$PAWL_BUILD/examples/logistic" "$folder/data.svm" 2 >"$folder/one" &
worker=$!
PAWL_ADDRESS=$address "$PAWL_BUILD/examples/logistic" "$folder/data.svm" 2 >"$folder/two"
wait "$worker"
alone=$("$PAWL_BUILD/examples/logistic" "$folder/data.svm" | sed -n 's/^iteration 29: objective \(0\.[0-9]\{4\}\).*/\1/p')
if [ -z "$alone" ] || ! cat "$folder/one" "$folder/two" | grep -q "^iteration 29: objective $alone"; then
  echo "two workers do not find what one finds, $alone:"
  cat "$folder/one" "$folder/two"
  exit 1
fi

# The processes of a program that was written for Lapser find one another by the environment, and use no servers.
export PAWL_ADDRESS="$address" PAWL_LAPSER_MEMBERS=3 PAWL_LAPSER_GROUP=examples/lapser
"$PAWL_BUILD/examples/lapser" >"$folder/one" 2>&1 &
first=$!
"$PAWL_BUILD/examples/lapser" >"$folder/two" 2>&1 &
second=$!
"$PAWL_BUILD/examples/lapser" >"$folder/three" 2>&1 || good=no
wait "$first" || good=no
wait "$second" || good=no
if [ -n "${good:-}" ] ||
  ! cat "$folder/one" "$folder/two" "$folder/three" | grep -qF '3 processes, 60 iterations: the largest error is 0.000000'; then
  echo "three processes of examples/lapser should find what one finds:"
  cat "$folder/one" "$folder/two" "$folder/three"
  exit 1
fi
