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
run lists -- '10000 keys, 100 rounds: the first holds 100, the last 100'
run tasks -- '100 pulls, each of them saw 100'
run tasks -- 'refused: push to tasks/sums: key 7 at position 2 does not rise'
run groups -- 'round 2: 4 workers, sum 12'
run local -- 'at the servers: 0 0 0'
run logistic 3 -- 'iteration 29: objective 0.'

# A file of two examples that a line separates: the objective falls from log 2.
printf '+1 3:1 7:2\n-1 3:-1 9:1\n' >"$output.svm"
trap 'rm -f "$output" "$output.svm"' EXIT
run logistic 2 "$output.svm" -- 'iteration  0: objective 0.69315'
run logistic 1 "$output.svm" -- 'iteration 29: objective 0.0'
