# Shared by the tests of `pawl sim`. Read after scene.sh with `.`; not run by itself.
#
#   $planted   the path of the command with planted bugs
#   $verb      the words after `pawl`, such as `sim faults`; the test sets it
# shellcheck shell=sh

planted=${PAWL_PLANTED_COMMAND:?the path of the command with planted bugs}

# replays FAILED: the last command reported a failure, after text that the pattern FAILED matches. The command that it
# printed reports the same failure.
replays() {
  again=$(sed -n 's/.*to replay it: pawl-planted //p' out | head -n 1)
  what=$(sed -n "s/.*$1//p" out | head -n 1)
  [ -n "$what" ] || fail "no failure in: $(cat out)"
  # shellcheck disable=SC2086 # several words
  expect 1 "$planted" $again
  grep -q -F -e "$what" out || fail "'$again' does not show '$what' but: $(cat out)"
}

# refuses HINT ARGUMENT…
refuses() {
  hint=$1
  shift
  # shellcheck disable=SC2086,SC2154 # several words, which the test has set
  expect 2 "$pawl" $verb "$@"
  complained "$hint"
}
