#!/bin/sh
# Training under srun, in a Slurm of one node that this test starts for itself.
# labels: nosan
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
within 10 munge -n --socket="$work/run/munge" || skip "munged does not start: $(tail -n 3 munged.log)"
port=$((20000 + $$ % 20000))
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
within 20 sh -c "sinfo -h -o %t | grep -q idle" || skip "Slurm does not start: $(tail -n 3 ctld.log; tail -n 3 slurmd.log)"
timeout 30 srun -n 1 true 2>err || skip "srun does not work here: $(cat err)"

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
