#!/bin/sh
# Names that are not UTF-8, of folders and files: every answer is JSON all the same, with the bytes that are no characters shown
# as \xHH.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
odd=$(printf 'caf\351')

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
expect 0 "$pawl" put $patience test/v --create --type i64 --size 10 1=1
expect 0 "$pawl" status $patience --json
mkdir "$odd"
expect 0 "$pawl" checkpoint save $patience "$work/$odd" --name one --json
said 'caf\\\\xe9'
expect 0 "$pawl" status $patience --json
said '"directory":"[^"]*caf\\\\xe9"'
expect 0 "$pawl" status $patience
expect 1 "$pawl" checkpoint save $patience "$work/$odd" --name one # the last one failed there
expect 0 "$pawl" status $patience
expect 0 "$pawl" checkpoint verify "$odd/one" --json
said 'caf\\\\xe9'
expect 0 "$pawl" checkpoint load $patience "$odd" --json
expect 0 "$pawl" key new "$odd.key" --json
said 'caf\\\\xe9.key'
expect 0 "$pawl" key show "$odd.key" --json
expect 0 "$pawl" checkpoint export "$odd/one" test/v "$odd.npy" --json
said 'caf\\\\xe9.npy'
