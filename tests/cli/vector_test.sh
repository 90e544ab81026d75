#!/bin/sh
# Vectors that servers cannot make: the manager refuses what no server could, a server that lacks memory refuses that vector and
# nothing else, others join, and an operator sees it and deletes it.
# labels: nosan
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
page() { sed -n 's|.*\(http://[^ ]*\)healthz.*|\1|p' "$1.log" | head -n 1; }

start manager "$pawl" manager --listen 127.0.0.1:0 --http 127.0.0.1:0 --replicas 0 --data "$work/log"
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
cat >small <<'END'
#!/bin/sh
ulimit -v 6000000
exec "$@"
END
chmod +x small
start server.a ./small "$pawl" server --join "$PAWL_ADDRESS" --http 127.0.0.1:0
expect 0 "$pawl" put $patience test/good --create --type i64 --size 100 1=7

# What no server could make is refused, and changes nothing.
expect 1 "$pawl" put $patience test/bad --create --type f32 --size 4294967296 --layout dense 1=1
complained 'too large: a dense vector'
expect 1 "$pawl" put $patience test/bad --create --type f64 --size 200000000 --width 1000000 --layout dense 1=1
complained 'too large: a dense vector'
expect 0 "$pawl" vector list $patience
said 'test/good'
! grep -q test/bad out || fail "it is there: $(cat out)"

# What this server has no memory for.
expect 1 "$pawl" put $patience test/huge --create --type f64 --size 2000000000 --layout dense 1=1
complained 'no memory'
expect 1 "$pawl" get $patience test/huge 1
complained 'no memory'
expect 0 "$pawl" put $patience test/good 1=1
expect 0 "$pawl" get $patience test/good 1
said '8'
knows() { "$pawl" status $patience | grep -q 'test/huge.*cannot be created.*node 1'; }
eventually knows || fail "status says nothing: $("$pawl" status)"
expect 0 "$pawl" vector show $patience test/huge
said 'missing on   node 1'
expect 0 "$pawl" vector show $patience test/huge --json
said '"not_made_by": *\[1'
expect 0 "$pawl" vector list $patience test --json
said '"vector": *"test/good"'
expect 1 "$pawl" vector show $patience test/none
complained 'not found'
if command -v curl >/dev/null; then
  mentions() { curl -fs "$(page manager)healthz" | grep -q 'vectors that some server cannot create'; }
  eventually mentions || fail "health is $(curl -s "$(page manager)healthz")"
  is_well() { curl -fs "$(page server.a)healthz" | grep -q '^ok'; }
  eventually is_well || fail "the server is not well: $(curl -s "$(page server.a)healthz")"
fi

# Others join, the small one stays, and a restart of the manager changes nothing.
start server.b "$pawl" server --join "$PAWL_ADDRESS" --http none
both_up() { [ "$("$pawl" status $patience --json | grep -o '"state":"up","linked":true' | wc -l)" -eq 2 ]; }
eventually both_up || fail "they are not both in: $("$pawl" status)"
expect 0 "$pawl" put $patience test/good 1=1 50=1 99=1

# Deleting it.
expect 1 "$pawl" vector delete $patience test/huge </dev/null
complained '--yes'
expect 0 "$pawl" vector delete $patience test/huge --yes
said 'deleted test/huge'
expect 1 "$pawl" vector delete $patience test/huge --yes
complained 'not found'
gone() { "$pawl" status $patience >seen && ! grep -q 'cannot be created' seen; }
eventually gone || fail "status still speaks of it: $("$pawl" status)"
expect 0 "$pawl" vector delete $patience test/good --yes --json
said '"deleted": *"test/good"'
expect 0 "$pawl" vector list $patience --json
[ ! -s out ] || fail "something is left: $(cat out)"

# Rights: a key for one space deletes there, and nowhere else.
expect 0 "$pawl" key new cluster.key
"$pawl" key new --space mine >mine.key
"$pawl" key new --read-only >read.key
cat mine.key read.key >>cluster.key
chmod 600 ./*.key
start manager2 "$pawl" manager --listen 127.0.0.1:0 --http none --replicas 0 --key-file cluster.key
PAWL_ADDRESS=$(address_of manager2)
start server.c "$pawl" server --join "$PAWL_ADDRESS" --http none --key-file cluster.key
expect 0 "$pawl" put $patience --key-file cluster.key mine/v --create --type i64 --size 10 1=1
expect 0 "$pawl" put $patience --key-file cluster.key yours/v --create --type i64 --size 10 1=1
expect 1 "$pawl" vector delete $patience yours/v --yes --key-file mine.key
expect 1 "$pawl" vector delete $patience mine/v --yes --key-file read.key
expect 0 "$pawl" vector delete $patience mine/v --yes --key-file mine.key
expect 0 "$pawl" vector list $patience --key-file cluster.key
said 'yours/v'
