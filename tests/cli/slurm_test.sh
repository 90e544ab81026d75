#!/bin/sh
# Training under srun, in a Slurm of one node that this test starts for itself.
# labels: nosan
# timeout: 900
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
PATH=$PATH:/usr/sbin

skip() {
  echo "skipped: $*"
  exit 77
}

for program in munged munge slurmctld slurmd srun; do
  command -v $program >/dev/null || skip "there is no $program here"
done

# --- a Slurm of one node ------------------------------------------------------------------------------------------------------------

host=$(hostname -s)
chmod 755 "$work"
mkdir run spool state
head -c 1024 /dev/urandom >munge.keyfile
chmod 600 munge.keyfile
munged --foreground --force --socket="$work/run/munge" --key-file="$work/munge.keyfile" --pid-file="$work/run/munge.pid" \
  --seed-file="$work/munge.seed" --num-threads=1 >munged.log 2>&1 &
pids="$pids $!"
eventually munge -n --socket="$work/run/munge" || skip "munged does not start: $(tail -n 3 munged.log)"
port=$((20000 + $$ % 12000)) # the kernel gives none below 32768 by itself
cat >slurm.conf <<END
ClusterName=pawl
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/run/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/run/ctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmctldPort=$port
SlurmdPort=$((port + 1))
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(getconf _NPROCESSORS_ONLN) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP
END
SLURM_CONF=$work/slurm.conf
export SLURM_CONF
slurmctld -D -f slurm.conf >ctld.log 2>&1 &
pids="$pids $!"
slurmd -D -f slurm.conf >slurmd.log 2>&1 &
pids="$pids $!"
eventually sh -c "sinfo -h -o %t | grep -q idle" || skip "Slurm does not start: $(tail -n 3 ctld.log; tail -n 3 slurmd.log)"
timeout 200 srun -n 1 true 2>err || skip "srun does not work here: $(cat err)"

# --- training -------------------------------------------------------------------------------------------------------------------------

awk 'BEGIN {
  srand(3)
  for (i = 0; i < 300; i++) { a = rand(); b = rand(); print (a > b ? "+1" : "-1"), "1:" a, "2:" b }
}' >data.svm
expect 0 srun -n 3 --overcommit "$pawl" env --json
[ "$(grep -c '"role":"scheduler"' out)" -eq 1 ] || fail "one scheduler, not: $(cat out)"
[ "$(grep -c '"role":"worker"' out)" -eq 2 ] || fail "two workers, not: $(cat out)"
expect 0 srun -n 3 --overcommit "$pawl" train logistic data.svm -o launched.model --json --log log.jsonl
[ "$(grep -c '"objective":' out)" -eq 1 ] || fail "one result, not: $(cat out)"
[ -s launched.model ] || fail 'there is no model'
grep -q '"workers":2' log.jsonl || fail "two workers, not: $(cat log.jsonl)"
for left in .pawl-*; do [ ! -e "$left" ] || fail "$left is left behind"; done

# --- without servers -----------------------------------------------------------------------------------------------------------------

expect 0 srun -n 4 --overcommit "$pawl" train svm data.svm --method sgd --share reduce --graph root --passes 10 -o svm.model --json
said '"share":"reduce","workers":3,"workers_lost":0'
expect 0 "$pawl" predict svm.model data.svm

# srun does not end the other processes if one of them is killed: the survivors go on, and the first one saves the model.
# Workers are the processes that have not printed a round; the first one writes the log.
srun -n 4 --overcommit "$pawl" train svm data.svm --method sgd --share reduce --graph root --passes 1000000 -o long.model \
  --log long.jsonl >long.out 2>long.log &
launch=$!
pids="$pids $launch"
eventually test -s long.jsonl || fail 'the run does not begin'
of_rank() { # of_rank NUMBER: the process of the run with this rank
  for folder in $(grep -lsz "^SLURM_PROCID=$1\$" /proc/[0-9]*/environ); do
    folder=${folder%/environ}
    tr '\0' ' ' <"$folder/cmdline" 2>/dev/null | grep -q 'train svm .*long\.model' || continue
    [ "$(readlink "$folder/cwd")" = "$work" ] && echo "${folder#/proc/}"
  done | head -n 1
}
victim=$(of_rank 2)
kill -9 "$victim"
before=$(wc -l <long.jsonl)
eventually sh -c "[ \"\$(wc -l <long.jsonl)\" -gt $((before + 3)) ]" || fail 'the survivors do not go on'
kill -INT "$(of_rank 0)"
wait $launch && fail 'srun does not notice the end of a process'
grep -q "worker $victim at .* was lost; 2 left" long.log || fail "no word about the lost worker: $(cat long.log)"
grep -q '^  workers  *2 finished, 1 lost; shared by reduce' long.out || fail "the summary: $(cat long.out)"
expect 0 "$pawl" predict long.model data.svm
