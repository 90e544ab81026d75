#!/bin/sh
# Strange but honest data: what is trained on, and what is said of the rest.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# trains TEXT NAME [OPTION…]: there is a model, and it predicts the same data.
trains() {
  # shellcheck disable=SC2059 # the text has escapes
  printf "$1" >"$2"
  name=$2
  shift 2
  expect 0 "$pawl" train logistic "$name" --workers 1 -q -o strange.model "$@"
  expect 0 "$pawl" predict strange.model "$name"
}

# refuses WHY TEXT NAME [OPTION…]
refuses() {
  why=$1
  # shellcheck disable=SC2059
  printf "$2" >"$3"
  name=$3
  shift 3
  expect 1 "$pawl" train logistic "$name" --workers 1 "$@"
  complained "$why"
}

trains '1 1:1\n-1 1:2' no-final-break.svm
trains '1 1:1\r\n-1 2:1\r\n' crlf.svm
trains '1 3:1 3:2\n-1 1:2\n' twice.svm
trains '1 9223372036854775807:1\n-1 1:2\n' far.svm
trains '1 9223372036854775807:1\n-1 0:2\n' far-and-zero.svm
trains '1\n-1\n1\n' no-features.svm
trains 'y,a\n1,"x, y"\n0,"he said ""hi"""\n' quotes.csv --label y
trains 'y,a\n1,NA\n0,3\n1,\n0,?\n' missing.csv --label y
trains '1 1:1\n\n\n-1 2:1\n# the end\n' gaps.svm

refuses 'empty.svm: the file is empty' '' empty.svm
refuses 'blank.svm: the file contains no rows' '\n\n' blank.svm
refuses 'the data has no rows' 'a,b,c\n' head.csv
refuses 'have the label 1; training needs two labels' '1 1:1\n1 2:1\n' one-class.svm
refuses 'one.svm: .*\|training needs two labels' '1 1:1' one.svm
refuses 'not of two classes: there are 0, 1, 2' '0 3:1\n1 1:2\n2 1:1\n' three.svm
refuses 'negative.svm:1:3: expected a feature id' '1 -3:1\n-1 1:2\n' negative.svm
refuses 'names.svm:1:4: expected a feature id' '+1 a:1\n' names.svm
refuses 'nan.svm:1:3: the value does not fit a finite float' '1 3:nan\n-1 1:2\n' nan.svm
refuses 'inf.svm:2:4: the value does not fit a finite float' '1 3:1\n-1 1:inf\n' inf.svm
refuses 'huge.svm:1:3: the feature id exceeds 2^63 - 1' '1 99999999999999999999:1\n-1 1:2\n' huge.svm
refuses 'words.csv:2:1: the label is not a number' 'y,a\nyes,1\nno,3\n' words.csv --label y
refuses 'ragged.csv:2:4: fewer columns than in the first line' '1,2,3\n0,2\n' ragged.csv
printf 'y,a\n1,2\n' >label.csv
expect 2 "$pawl" train logistic label.csv --label z
complained 'no column has the name or number given for the label'

# Words are hashed to ids far apart, and the objective is that of the same rows with ids that are not.
awk 'BEGIN {
  srand(5)
  print "y,colour,size" >"hashed.csv"
  for (i = 0; i < 300; i++) {
    c = int(5 * rand()); s = rand(); y = (c < 2) != (s > 0.8)
    print y "," substr("red  greenblue blackwhite", 5 * c + 1, 5) "," s >"hashed.csv"
    print y, c + 1 ":1", "6:" s >"numbered.svm"
  }
}'
expect 0 "$pawl" train logistic numbered.svm --workers 2 -o numbered.model --json
numbered=$(figure objective)
expect 0 "$pawl" train logistic hashed.csv --label y --workers 2 -o hashed.model --json
awk -v a="$(figure objective)" -v b="$numbered" 'BEGIN { d = a - b; exit !(d < 1e-3 * b && -d < 1e-3 * b) }' ||
  fail "$numbered is the objective of numbered words, but of hashed ones: $(cat out)"
[ "$(figure features)" -gt 65536 ] || fail "the words have ids that are not far apart: $(cat out)"
expect 0 "$pawl" predict hashed.model hashed.csv --label y
