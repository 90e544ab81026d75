#!/bin/sh
# tools/layers on a small tree with planted violations: each is reported, and nothing else.
set -eu
layers=$PAWL_SOURCE/tools/layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# Adds a line to a file of the tree. With a third argument, what must be reported for that line.
line() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >>"$tree/$1"
  if [ $# = 3 ]; then
    printf '%s:%d: %s\n' "$1" "$(wc -l <"$tree/$1")" "$3" >>"$tree/expected"
  fi
}

# What is there to be included.
for header in base/log net/net wire/frame store/store ring/ring graph/graph sync/task protocol/protocol shard/shard job/job \
  server/server manager/manager manager/ledger/ledger manager/leader/election client/client sim/sim host/http api/api \
  cli/cmd; do
  line "src/$header.h" '/* a header */'
done
line include/pawl/pawl.h '#include <pawl/range.h>'
line include/pawl/range.h '#include <stdint.h>'
line apps/common/json.h '/* a header */'
line apps/linear/inside.h '/* a header */'
line apps/lda/model_inside.h '/* a header */'
: >"$tree/expected"

# The sound part: every line below is allowed.
line src/base/hash.c '#include "base/log.h"'
line src/base/hash.c '#include <xxhash.h>'
line src/net/tcp/tcp.c '#include "net/net.h"'
line src/net/tcp/tcp.c '#include "../net.h"'
line src/net/tcp/tcp.c '#include "base/log.h"'
line src/net/tcp/tcp.c '#include <net/if.h>' # the system's, not the module's
line src/net/tcp/tcp.c '#include <pawl/pawl.h>'
line src/net/tcp/tcp.c '/* #include "wire/frame.h" in a comment */'
line src/net/tcp_test.c '#include "wire/frame.h"'
line src/net/tcp_test.c '#include "cli/cmd.h"'
line src/protocol/protocol.c '#include "wire/frame.h"'
line src/server/server.c '#include "shard/shard.h"'
line src/server/server.c '#include "store/store.h"'
line src/manager/manager.c '#include "manager/ledger/ledger.h"'
line src/manager/leader/election.c '#include "manager/manager.h"'
line src/client/client.c '#include "server/server.h"'
line src/sim/sim.c '#include "server/server.h"'
line src/api/node.c '#include "host/http.h"'
line src/cli/main.c '#include "sim/sim.h"'
line src/cli/main.c '#include "apps/lda/model_inside.h"'
line apps/lda/lda.c '#include <pawl/pawl.h>'
line apps/lda/lda.c '#include "lda.h"'
line apps/lda/lda.c '#include "apps/common/json.h"'
line apps/lda/lda.h '#include <math.h>'
line tests/whole.c '#include "cli/cmd.h"'
line bench/keys.c '#include "wire/frame.h"'
line fuzz/frame_fuzz.c '#include "wire/frame.h"'

# The planted part.
line src/base/bad.c '#include "base/log.h"'
line src/base/bad.c '#include "net/net.h"' 'module base may not look into module net'
line src/net/bad.c '#include "wire/frame.h"' 'module net may not look into module wire'
line src/wire/bad.h '#  include "net/net.h"' 'module wire may not look into module net'
line src/wire/deep/bad.c '#include "../../net/net.h"' 'module wire may not look into module net'
line src/store/bad.c '#include "ring/ring.h"' 'module store may not look into module ring'
line src/sync/bad.c '#include <graph/graph.h>' 'module sync may not look into module graph'
line src/graph/bad.c '#include "sync/not_written_yet.h"' 'module graph may not look into module sync'
line src/protocol/bad.c '#include "shard/shard.h"' 'module protocol may not look into module shard'
line src/shard/bad.c '#include "job/job.h"' 'module shard may not look into module job'
line src/shard/bad.c '#include "server/server.h"' 'module shard may not look into module server'
line src/server/bad.c '#include "manager/manager.h"' 'module server may not look into module manager'
line src/server/bad.c '#include "sim/sim.h" /* why not? */' 'module server may not look into module sim'
line src/server/bad_testing.h '#include "manager/manager.h"' 'module server may not look into module manager'
line src/manager/bad.c '#include "server/server.h"' 'module manager may not look into module server'
line src/manager/bad.c '#include "manager/leader/election.h"' 'module manager may not look into module manager/leader'
line src/manager/ledger/bad.c '#include "manager/manager.h"' \
  'module manager/ledger may not look into module the rest of its module'
line src/client/bad.c '#include "sim/sim.h"' 'module client may not look into module sim'
line src/sim/bad.c '#include "host/http.h"' 'module sim may not look into module host'
line src/host/bad.c '#include "api/api.h"' 'module host may not look into module api'
line src/host/bad.c '#include "sim/sim.h"' 'module host may not look into module sim'
line src/api/bad.c '#include "cli/cmd.h"' 'module api may not look into module cli'
line src/api/bad.c '#include "sim/sim.h"' 'module api may not look into module sim'
line src/api/bad.c '#include "apps/linear/inside.h"' 'module api may not look into module apps/linear'
line src/api/bad.c '#include "../../tests/help.h"' 'module api may not look into module tests'
line src/cli/bad.c '#include "apps/linear/inside.h"' 'module cli may not look into module apps/linear'
line src/cli/bad.c '#include "net/tcp_test.c"' 'module cli may not include a test, net/tcp_test.c'
line src/attic/bad.c '#include <stdio.h>' 'module attic is not in the list of modules'
line src/stray.c '#include <stdio.h>' 'a source outside every module'
line include/pawl/bad.h '#include "base/log.h"' 'module include may not look into module base'
line include/pawl/bad.h '#include <openssl/ssl.h>' \
  'module include may only look into the C library, not into <openssl/ssl.h>'
line apps/lda/bad.c '#include "base/log.h"' 'module apps/lda may not look into module base'
line apps/lda/bad.c '#include "apps/linear/inside.h"' 'module apps/lda may not look into module apps/linear'
line apps/common/bad.c '#include "apps/linear/inside.h"' 'module apps/common may not look into module apps/linear'
line examples/bad.c '#include "../src/net/net.h"' 'module examples may not look into module net'
line python/bad.c '#include "api/api.h"' 'module python may not look into module api'

LC_ALL=C sort "$tree/expected" >"$tree/wanted"
if "$layers" "$tree" >"$tree/reported"; then
  echo "tools/layers took a tree with violations for a clean one"
  exit 1
fi
LC_ALL=C sort "$tree/reported" | diff -u "$tree/wanted" - || exit 1
echo "$(wc -l <"$tree/wanted") planted violations, all found"

# Without them the tree is clean.
find "$tree" -name 'bad*.*' -delete
rm "$tree/src/stray.c"
"$layers" "$tree"
