#!/usr/bin/python3
"""Groups: members that advance together, each in a thread with a session of its own."""
# labels: nosan
import json
import os
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import scene

import numpy as np
import pawl

MEMBERS = 3


def all_members(address, work, **options):
    """Runs work(session, group) as each member; what they return, by rank."""

    def member(_):
        with pawl.Session(address, **options) as session, session.group("test/group", MEMBERS) as group:
            group.barrier(scene.PATIENCE)
            rank = group.rank
            result = work(session, group)
            group.barrier(scene.PATIENCE)  # nobody leaves before all are done
            return rank, result

    with ThreadPoolExecutor(MEMBERS) as pool:
        return [result for _, result in sorted(pool.map(member, range(MEMBERS)))]


class GroupTest(scene.Test):
    def setUp(self):
        self.session = pawl.Session(servers=2)
        self.addCleanup(self.session.close)

    def test_after_a_barrier_everybody_sees_what_all_have_pushed(self):
        def work(session, group):
            w = session.ensure("test/w", "int64", 100)
            seen = []
            for _ in range(5):
                w.push(np.ones(100, "int64"), wait=False)
                group.barrier(scene.PATIENCE)
                seen.append(int(w.pull([50])[0]))
                group.barrier(scene.PATIENCE)
            return group.size, seen

        expected = (MEMBERS, [MEMBERS * (i + 1) for i in range(5)])
        self.assertEqual(all_members(self.session.address, work), [expected] * MEMBERS)

    def test_pushes_of_a_tick_are_applied_as_one(self):
        """adagrad with the sum of all gradients takes one step of `rate`; with each of them it would take three."""

        def work(session, group):
            w = session.ensure("test/step", "float64", 10, rule="adagrad rate=1 eps=1e-30")
            group.push(w, np.full(10, 2.0))
            group.clock()
            return w.pull().tolist()

        self.assertEqual(all_members(self.session.address, work), [[-1.0] * 10] * MEMBERS)

    def test_members_may_name_different_keys_or_none(self):
        def work(session, group):
            w, rank = session.ensure("test/union", "int64", 10), group.rank
            keys = [[1, 2], [2, 3], []][rank]
            group.push(w, [1] * len(keys), keys)
            group.clock()
            group.wait(group.tick, scene.PATIENCE)
            return w.pull().tolist()

        self.assertEqual(all_members(self.session.address, work), [[0, 1, 2, 1, 0, 0, 0, 0, 0, 0]] * MEMBERS)

    def test_after_a_barrier_a_pull_of_the_group_brings_what_all_have_pushed(self):
        def work(session, group):
            w, seen, out = session.ensure("test/old", "int64", 100), [], np.zeros(2, "int64")
            for tick in range(5):
                w.push(np.ones(100, "int64"))
                group.barrier(scene.PATIENCE)
                group.pull(w, [3, 50], out=out)
                rows = group.pull(w, range=(10, 20), wait=False).wait(scene.PATIENCE)
                seen.append(sorted({*out.tolist(), *rows.tolist()}))
                group.barrier(scene.PATIENCE)
                self.assertGreaterEqual(int(group.pull(w, staleness=1)[0]), MEMBERS * (tick + 1))
            return seen

        expected = [[MEMBERS * (i + 1)] for i in range(5)]
        self.assertEqual(all_members(self.session.address, work), [expected] * MEMBERS)

    def test_a_relay_reads_rows_once_for_all_members(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        key, command = os.path.join(folder.name, "key"), os.path.join(scene.BUILD, "pawl")
        subprocess.run([command, "key", "new", key], check=True, stdout=subprocess.DEVNULL)
        with pawl.Session(servers=1, key_file=key) as session:
            words = [command, "relay", "--join", session.address, "--key-file", key, "--json", "--ready-fd", "1"]
            relay = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            self.addCleanup(relay.stdout.close)
            self.addCleanup(relay.kill)
            self.assertIn("ready", relay.stdout.readline())

            def work(member, group):
                w = member.ensure("test/once", "int64", 1000)
                for tick in range(20):
                    w.push(np.ones(1000, "int64"))
                    group.barrier(scene.PATIENCE)
                    self.assertGreaterEqual(int(group.pull(w)[0]), MEMBERS * (tick + 1))

            all_members(session.address, work, key_file=key)
            relay.send_signal(signal.SIGTERM)
            figures = json.loads(relay.stdout.read())
            self.assertEqual(relay.wait(scene.PATIENCE), 0)
        self.assertGreater(figures["pulls"], figures["reads"])

    def test_ticks_are_counted_and_waited_for(self):
        group = self.session.group("test/alone", 1)
        self.assertEqual((group.tick, group.size, group.rank), (0, 1, 0))
        task = group.clock(wait=False)
        task.wait(scene.PATIENCE)
        group.wait(1, scene.PATIENCE)
        push = self.session.ensure("test/w", size=10).push([1], [1], wait=False)
        group.clock(after=[push])
        self.assertEqual(group.tick, 2)
        self.refused("TIMED_OUT", "wait for tick 3 of test/alone: not finished after 0.1 s", group.wait, 3, 0.1)

    def test_a_clock_after_a_push_that_failed_is_cancelled(self):
        group = self.session.group("test/alone", 1)
        w = self.session.ensure("test/sgd", "float64", 10, rule="sgd rate=1")
        push = w.push([np.nan], [1], wait=False)
        self.refused("CANCELLED", "", group.clock, after=push)
        self.refused("REFUSED", "", push.wait)

    def test_what_is_no_group_is_refused(self):
        self.refused("INVALID", "join", self.session.group, "nonsense")
        self.refused("INVALID", "is not a string", self.session.group, 7)
        self.refused("INVALID", "size=-1", self.session.group, "a/g", -1)
        group = self.session.group("a/g", 1)
        self.refused("EXISTS", "a/g", self.session.group, "a/g", 1)
        for tick in (-1, 2**64, 1.5, "one"):
            self.refused("INVALID", "is not a tick", group.wait, tick)
        self.refused("INVALID", "not a vector of this session", group.push, "w", [1], [1])
        self.refused("INVALID", "pull of a/g: 'w' is not a vector of this session", group.pull, "w")
        w = self.session.ensure("a/v", size=3)
        for staleness in (-1, 2**64, 0.5, None):
            self.refused("INVALID", "staleness %r is not a number of ticks" % staleness, group.pull, w, staleness=staleness)
        with pawl.Session(self.session.address) as other:
            self.refused("MISMATCH", "a/g", other.group, "a/g", 5)
        with pawl.Session(self.session.address, read_only=True) as reader:
            self.refused("FORBIDDEN", "a/g", reader.group, "a/g")
            self.session.ensure("a/w", size=3)
            self.refused("FORBIDDEN", "a/w", reader.open("a/w").push, [1], [1])


if __name__ == "__main__":
    scene.main()
