#!/bin/sh
# tools/changed prints a file until a check of it has passed, and again when the file or the key has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
changed=$PAWL_SOURCE/tools/changed
expect() {
  found=$(printf '%s\n' a.c b.c c.c | "$changed" record "$1" | tr '\n' ' ')
  [ "$found" = "$2" ] || { echo "$3: expected '$2', found '$found'"; exit 1; }
}
echo 1 >a.c
echo 2 >b.c
echo 3 >c.c
expect key 'a.c b.c c.c ' 'at first'
expect key 'a.c b.c c.c ' 'after a check that failed'
mv record.new record
expect key '' 'after a check that passed'
touch b.c
expect key '' 'a file with another time'
echo 4 >b.c
expect key 'b.c ' 'a file that has changed'
expect key 'b.c ' 'a file that has changed, and was not checked'
mv record.new record
expect key '' 'a file that was checked again'
expect other 'a.c b.c c.c ' 'another key'
rm record
expect key 'a.c b.c c.c ' 'a new record'
