#!/bin/sh
# No timer depends on the wall clock (docs/faults.md): every wait with a limit is by the monotonic clock. These files read the
# wall clock for people: for logs, checkpoints, keys, pictures of a training, and windows of sketches.
set -eu
cd "$PAWL_SOURCE"
readers='src/api/sketch/sketch_writer.c src/base/log.c src/cli/cluster/cmd_key.c src/cli/sketch/cmd_sketch_insert.c
  src/cli/sketch/run.c src/cli/train/board.c src/host/disk_queue.c src/host/run/audit.c'

sources() { find src apps include -name '*.[ch]' ! -name '*_test.[ch]' ! -name '*_testing.[ch]' -print0; }
found=$(sources | xargs -0 grep -lE 'CLOCK_REALTIME|gettimeofday|timespec_get|(^|[^A-Za-z0-9_])time\((NULL|&|0)' | sort | tr '\n' ' ')
# shellcheck disable=SC2086 # several files
wanted=$(printf '%s\n' $readers | sort | tr '\n' ' ')
if [ "$found" != "$wanted" ]; then
  printf 'files that read the wall clock: %s\nfiles that may: %s\n' "$found" "$wanted"
  exit 1
fi
waits=$(sources | xargs -0 grep -lE '(pthread_cond|sem|mtx|cnd)_timed(wait|lock)\(' |
  xargs grep -LE 'pthread_condattr_setclock\(&[a-z]+, CLOCK_MONOTONIC\)' || true)
if [ -n "$waits" ]; then
  echo "waits by the wall clock: $waits"
  exit 1
fi
