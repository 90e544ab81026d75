#!/bin/sh
# Key files: only their owner can read them, they are not overwritten by accident, and nothing shows a secret.
set -eu
pawl=${PAWL_COMMAND:?the path of the command}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "$*" >&2
  exit 1
}

umask 000 # the file's mode must not depend on it
"$pawl" key new -o a.key >out
[ "$(stat -c %a a.key)" = 600 ] || fail "the mode is $(stat -c %a a.key)"
grep -q '^pawl1-[0-9a-f]\{64\}$' a.key || fail 'there is no key in the file'
secret=$(sed -n 's/^pawl1-//p' a.key)
if grep -q "$secret" out; then fail 'the secret is shown'; fi

"$pawl" key show a.key >out
name=$(cut -d ' ' -f 1 out)
[ "$(printf %s "$name" | wc -c)" -eq 16 ] || fail "strange name: $name"
grep -q "$name" a.key || fail 'the file does not name its key'
if grep -q "$secret" out; then fail 'the secret is shown'; fi
PAWL_KEY_FILE=a.key "$pawl" env >out
grep -q "using $name" out || fail "env does not know the key: $(cat out)"
if grep -q "$secret" out; then fail 'the secret is shown'; fi

cp a.key before
code=0
"$pawl" key new -o a.key >out 2>err || code=$?
[ "$code" -eq 1 ] || fail "a file that is there: exit code $code"
grep -q -e '--force' err || fail "no hint in: $(cat err)"
cmp -s a.key before || fail 'the file was changed'

chmod 644 a.key
"$pawl" key new --force -o a.key >out
if cmp -s a.key before; then fail 'the file was not replaced'; fi
[ "$(stat -c %a a.key)" = 600 ] || fail "the mode after --force is $(stat -c %a a.key)"
[ ! -e a.key.new ] || fail 'something was left behind'

"$pawl" key new b.key >out # short for -o
"$pawl" key new >printed 2>err
grep -q '^pawl1-[0-9a-f]\{64\}$' printed || fail "no key in: $(cat printed)"
[ "$(wc -l <printed)" -eq 1 ] || fail 'more than the key is printed'
[ "$(cat a.key b.key printed | grep -c '^pawl1-')" -eq 3 ] || fail 'not three keys'
[ "$(cat a.key b.key printed | grep '^pawl1-' | sort -u | wc -l)" -eq 3 ] || fail 'two keys are the same'

# Several keys in one file: all are named, the first is used.
cat a.key b.key >both.key
chmod 600 both.key
[ "$("$pawl" key show both.key | wc -l)" -eq 2 ] || fail 'not both keys are named'
[ "$("$pawl" key show both.key | grep -c used)" -eq 1 ] || fail 'not one key is used'
[ "$("$pawl" key show --json both.key | grep -c '"used":true')" -eq 1 ] || fail 'not one key is used'

# A key with limits carries them on its line, and is shown with them.
"$pawl" key new --read-only --space ads.v2 limited.key >out
grep -q '^pawl1-[0-9a-f]\{64\} read-only space=ads.v2$' limited.key || fail "no limits in: $(sed 's/-.*//' limited.key)"
grep -q 'limited: read-only space=ads.v2' out || fail "the limits are not named: $(cat out)"
(umask 077 && cat a.key limited.key >mixed.key)
"$pawl" key show mixed.key >out
grep -q 'used and accepted$' out || fail "not one key without limits: $(cat out)"
grep -q ' accepted, read-only space=ads.v2$' out || fail "the limits are not shown: $(cat out)"
[ "$("$pawl" key show --json mixed.key | grep -c '"read_only":true,"space":"ads.v2"')" -eq 1 ] || fail 'no limits in JSON'
[ "$("$pawl" key new --space a | cut -d ' ' -f 2)" = space=a ] || fail 'a printed key has no limits'
PAWL_KEY_FILE=mixed.key "$pawl" env >out # such a file is good for everything that reads keys

# A long comment is one line, whatever is written in it.
{
  printf '#%0254d' 0
  cat printed b.key
} >long.key
chmod 600 long.key
[ "$("$pawl" key show long.key | wc -l)" -eq 1 ] || fail 'a key in a comment is shown'

# refuses HINT ARGUMENT…: exit code 1, and the hint on standard error.
refuses() {
  hint=$1
  shift
  code=0
  "$pawl" "$@" >out 2>err || code=$?
  [ "$code" -eq 1 ] || fail "'$*': exit code $code"
  grep -q -e "$hint" err || fail "'$hint' is not in: $(cat err)"
  [ ! -s out ] || fail "'$*' fails and prints: $(cat out)"
}

sed 's/read-only/read-onyl/' limited.key >wrong.key
chmod 600 wrong.key
refuses "wrong.key:2: after a key only 'read-only'" key show wrong.key
printf '# a comment\n\npawl1-12345\n' >bad.key
chmod 600 bad.key
refuses 'bad.key:3:' key show bad.key
if grep -q 12345 err; then fail 'the broken key is shown'; fi
refuses 'chmod 600' key show printed
refuses 'nothing.key: cannot be opened' key show nothing.key
printf '# a comment\n' >empty.key
chmod 600 empty.key
refuses 'no key found' key show empty.key
refuses 'cannot write' key new -o nowhere/a.key

# Keys are added and revoked in one step; the file stays closed, and keeps what is not concerned.
rm -f ./*.key
"$pawl" key new own.key >out
"$pawl" key new --space ads ads.key >out
"$pawl" key new next.key >out
name_in() { "$pawl" key show "$1" | head -n 1 | cut -d ' ' -f 1; }
own=$(name_in own.key) ads=$(name_in ads.key) next=$(name_in next.key)
echo '# a word of ours' >>own.key
"$pawl" key add own.key ads.key >out
grep -q 'kill -HUP' out || fail "no word about SIGHUP: $(cat out)"
[ "$(stat -c %a own.key)" = 600 ] || fail "the mode after add is $(stat -c %a own.key)"
grep -q '# a word of ours' own.key || fail 'a comment is gone'
"$pawl" key show own.key | grep -q "^$ads  accepted, space=ads$" || fail "not added: $("$pawl" key show own.key)"
"$pawl" key add own.key ads.key --space ads --memory 1G --rate 5k --connections 3 --priority 4 >out
[ "$("$pawl" key show own.key | grep -c "^$ads")" -eq 1 ] || fail 'a key stands twice'
"$pawl" key show own.key | grep -q "^$ads  accepted, space=ads memory=1073741824 rate=5120 connections=3 priority=4$" ||
  fail "no quotas: $("$pawl" key show own.key)"
"$pawl" key add --first own.key next.key --json >out
grep -q '"used":true' out || fail "not first: $(cat out)"
"$pawl" key show own.key | grep -q "^$next  used and accepted$" || fail "not first: $("$pawl" key show own.key)"
refuses 'limited' key add --first own.key ads.key
refuses 'has no key' key revoke own.key 0123456789abcdef
refuses 'no key left' key revoke next.key "$next"
"$pawl" key revoke own.key "$own" "$ads" >out
[ "$("$pawl" key show own.key | wc -l)" -eq 1 ] || fail "not revoked: $("$pawl" key show own.key)"
if grep -q "$ads" own.key; then fail 'the comment of a revoked key is left'; fi
[ ! -e own.key.edit ] || fail 'something was left behind'
: >own.key.edit
refuses 'another edit of the keys' key add own.key ads.key
rm own.key.edit
ln -s own.key link.key
"$pawl" key add link.key ads.key >out # the file behind a link is changed, and the link stays
[ -L link.key ] || fail 'the link is gone'
"$pawl" key show own.key | grep -q "^$ads" || fail 'nothing was added behind the link'
