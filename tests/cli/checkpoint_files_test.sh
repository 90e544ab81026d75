#!/bin/sh
# Saving a checkpoint touches nothing that pawl has not made itself: a user's files, folders and links stay as they are, whatever
# name is asked for, and checkpoints can be read by their owner only.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

start manager "$pawl" manager --listen 127.0.0.1:0 --http none
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server.a "$pawl" server --join "$PAWL_ADDRESS" --http none --shards 2
start server.b "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/v --create --type i64 --size 1000 1=5 999=6

# What a user has, in a folder that checkpoints go to and elsewhere; as a list of names, types, links and contents.
mkdir home home/thesis home/empty elsewhere elsewhere/photos saved
echo words >home/thesis/chapter-1.tex
echo more >home/thesis/node-1-1.pawl
echo mine >home/notes
echo cat >elsewhere/photos/cat.jpg
ln -s "$work/elsewhere/photos" home/link
ln -s "$work/elsewhere/nowhere" home/dangling
ln -s "$work/home/notes" home/file-link
cp -rP home saved/user
for path in thesis link dangling file-link notes; do cp -rP "home/$path" saved/; done
listing() { (cd "$work" && find home elsewhere saved/user saved/thesis saved/link saved/dangling saved/file-link saved/notes \
  -printf '%p %y %l %m\n' -type f -exec cat {} \; | sort); }
listing >before

untouched() {
  listing >after
  cmp -s before after || fail "$1: a user's files are not what they were: $(diff before after)"
}

for name in thesis link dangling file-link notes empty; do
  expect 1 "$pawl" checkpoint save $patience "$work/home" --name "$name"
  complained "$name"
  untouched "--name $name"
done
for name in .. . ../home ../elsewhere/photos thesis/x /tmp .hidden 'a b' ''; do
  [ -z "$name" ] || expect 1 "$pawl" checkpoint save $patience "$work/home" --name "$name"
  untouched "--name $name"
done

# A save that works leaves them alone as well, beside whatever lies in the folder; and so does one that fails.
expect 0 "$pawl" checkpoint save $patience "$work/saved" --name first
expect 0 "$pawl" checkpoint verify saved/first
expect 0 "$pawl" checkpoint save $patience "$work/saved"
expect 0 "$pawl" checkpoint save $patience "$work/saved" --name third --incremental
untouched "saved beside them"
expect 1 "$pawl" checkpoint save $patience "$work/saved" --name first
complained 'first'
expect 0 "$pawl" checkpoint verify saved/first
[ -z "$(find saved -name '.pawl*')" ] || fail "an attempt is left: $(find saved -name '.pawl*')"

# Nobody but the owner reads them.
[ -z "$(find saved/first saved/third -perm /077)" ] || fail "others may read: $(ls -lR saved/first saved/third)"

# Of checkpoints made from time to time older ones go; those of a user, and what is no checkpoint, stay.
mkdir auto auto/auto-000001 auto/auto-000003
echo precious >auto/auto-000001/file
echo precious >auto/auto-000003/manifest.json
ln -s "$work/elsewhere/photos" auto/auto-000002
start manager2 "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0 --checkpoint-dir "$work/auto" \
  --checkpoint-every 0.2 --checkpoint-keep 2
PAWL_ADDRESS=$(address_of manager2)
start server2 "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/v --create --type i64 --size 10 1=1
has_ninth() { ls auto | grep -q 'auto-0000[1-9]'; }
eventually has_ninth || fail "no checkpoints come by themselves: $(ls auto) $(tail -n 5 manager2.log)"
[ "$(cat auto/auto-000001/file auto/auto-000003/manifest.json)" = "precious
precious" ] || fail "a user's files are gone"
[ "$(readlink auto/auto-000002)" = "$work/elsewhere/photos" ] || fail "a user's link is gone"
untouched "--checkpoint-keep"
# A machine that is busy enough removes the newest one before the file is in it.
add_file() {
  one=$(ls -d auto/auto-0000[1-9]* | tail -n 1)
  echo extra >"$one/mine"
}
eventually add_file || fail "no checkpoint stays: $(ls auto)"
name_of() { ls auto | grep 'auto-0000[1-9]' | tail -n 1; }
last=$(name_of)
moved_on() { [ "$(name_of)" \> "${last%?}9" ]; }
eventually moved_on || fail "it stopped at $(name_of)"
[ ! -e "$one" ] || [ "$(cat "$one/mine")" = extra ] || fail "a file in a checkpoint was removed"

# --- checkpoints go where the operator lets them go ------------------------------------------------------------------------

mkdir allowed other
ln -s "$work/other" allowed/out
start manager3 "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0 --checkpoints "$work/allowed"
PAWL_ADDRESS=$(address_of manager3)
start server3 "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/v --create --type i64 --size 10 1=1
expect 0 "$pawl" checkpoint save $patience "$work/allowed" --name one
expect 0 "$pawl" checkpoint save $patience "$work/allowed/below" --name two
for place in other allowed/../other allowed/out allowed/out/new other/new /; do
  expect 1 "$pawl" checkpoint save $patience "$work/$place" --name three
  complained '--checkpoints'
done
[ -z "$(ls -A other)" ] || fail "something was written: $(ls -A other)"

# A server has a list of its own.
start server4 "$pawl" server --join "$PAWL_ADDRESS" --http none --checkpoints "$work/elsewhere"
expect 1 "$pawl" checkpoint save $patience "$work/allowed" --name four
complained 'not permitted'
[ -z "$(find allowed -name '.pawl*')" ] || fail "an attempt is left: $(ls -A allowed)"
untouched "--checkpoints"

# Where others can reach it the manager lets checkpoints go nowhere unless it was told where.
expect 0 "$pawl" key new cluster.key
start manager5 "$pawl" manager --listen 0.0.0.0:0 --advertise 127.0.0.1 --http none --replicas 0 --key-file cluster.key
PAWL_ADDRESS=$(address_of manager5)
export PAWL_KEY_FILE="$work/cluster.key"
start server5 "$pawl" server --join "$PAWL_ADDRESS" --listen 127.0.0.1:0 --http none
expect 0 "$pawl" put $patience test/v --create --type i64 --size 10 1=1
expect 1 "$pawl" checkpoint save $patience "$work/other"
complained '--checkpoints'
expect 2 "$pawl" manager --checkpoints relative
