#!/usr/bin/python3
"""Reduce: members that average NumPy arrays in place, as threads with a session each and as processes."""
# labels: nosan
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import scene

import numpy as np
import pawl

KEY = "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

# One member: its arrays are its rank, or ten times its rank, and become the mean of all members'.
MEMBER = """
import sys
import numpy as np, pawl
with pawl.Session(sys.argv[1], key=sys.argv[2], peers_only=True) as session, session.peers("test/processes", 2) as peers:
    peers.wait()
    weights, bias = np.full((3, 2), peers.rank, "float32"), np.full(1, 10.0 * peers.rank)
    with peers.reduce("model", [weights, bias], graph="complete") as reduce:
        report = reduce.step()
    print(report.size, report.used, weights.tolist(), bias.tolist())
"""


class ReduceTest(scene.Test):
    def setUp(self):
        self.session = pawl.Session(peers_only=True, key=KEY)
        self.addCleanup(self.session.close)

    def members(self, count, work, name="test/group"):
        """What `work` returns for each of several members, which are threads; by rank."""

        def member(_):
            with pawl.Session(self.session.address, key=KEY, peers_only=True) as session:
                with session.peers(name, count) as peers:
                    peers.wait(timeout=scene.PATIENCE)
                    rank = peers.rank
                    return rank, work(peers, rank)

        with ThreadPoolExecutor(count) as pool:
            return [result for _, result in sorted(pool.map(member, range(count)), key=lambda pair: pair[0])]

    def test_members_average_their_arrays_in_place(self):
        def work(peers, rank):
            weights, bias = np.full((4, 5), rank, "float32"), np.full(3, 2.0 * rank)
            with peers.reduce("model", [weights, bias], graph="complete") as reduce:
                report = reduce.step(timeout=scene.PATIENCE)
                state = reduce.state()
            return weights, bias, report, state

        for rank, (weights, bias, report, state) in enumerate(self.members(3, work)):
            self.assertTrue((weights == 1).all() and weights.dtype == np.float32 and weights.shape == (4, 5), weights)
            self.assertTrue((bias == 2).all(), bias)
            self.assertIsInstance(report, pawl.ReduceReport)
            self.assertEqual((report.iteration, report.rank, report.size), (1, rank, 3))
            self.assertEqual((report.expected, report.used, report.current), (2, 2, 2))
            self.assertTrue(report.is_regenerated and not report.is_adopted)
            self.assertGreater(report.bytes_sent, 2 * (weights.nbytes + bias.nbytes))
            self.assertTrue(0 <= report.waited < scene.PATIENCE and report.agreed > 0, report)
            self.assertEqual((state.iteration, state.inputs, state.outputs, state.graph), (1, 2, 2, "complete"))

    def test_members_are_processes(self):
        words = [sys.executable, "-c", MEMBER, self.session.address, KEY]
        runs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for run in runs:
            out, err = run.communicate(timeout=scene.PATIENCE)
            self.assertEqual(run.returncode, 0, err)
            self.assertEqual(out, "2 1 [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]] [5.0]\n")

    def test_every_mode_and_filter(self):
        ways = [
            dict(mode="bsp", graph="ring"),
            dict(mode="async", graph="root"),
            dict(narrow="f16"),
            dict(narrow="bf16"),
            dict(narrow="int8"),
            dict(significant=1e-6),
            dict(graph="random", seed=7, degree=2),
            dict(what="mean", graph="complete"),
        ]

        done = [set() for _ in ways]

        def work(peers, rank):
            ends = []
            for i, options in enumerate(ways):
                values = np.linspace(rank, rank + 1, 300)
                with peers.reduce("way%d" % i, values, **options) as reduce:
                    for _ in range(60):
                        self.assertEqual(reduce.step(timeout=scene.PATIENCE).size, 4)
                    # Nobody closes before all have made their last step. A member that is behind may have been declared
                    # dead meanwhile: it needs the agreement of all to come back, and members agree in steps.
                    done[i].add(rank)
                    while len(done[i]) < 4:
                        with contextlib.suppress(pawl.TimedOut):
                            reduce.step(timeout=0.05)
                    ends.append(values)
            return ends

        for ends in self.members(4, work):
            for options, values in zip(ways, ends):
                # inputs may come late in the other modes, up to after the last step; the values stay between those of members
                near = 1.5 + 1e-9 if options.get("mode") else 0.05
                self.assertLess(np.abs(values - np.linspace(1.5, 2.5, 300)).max(), near, options)

    def test_a_step_that_times_out_can_be_continued(self):
        with self.session.peers("test/pair", 2) as peers, pawl.Session(self.session.address, key=KEY, peers_only=True) as session:
            with session.peers("test/pair", 2) as others:
                mine, other = np.zeros(10), np.ones(10)
                with peers.reduce("model", mine) as reduce, others.reduce("model", other) as second:
                    caught = self.refused("TIMED_OUT", "", reduce.step, timeout=0.05)
                    self.assertIsInstance(caught, TimeoutError)
                    self.assertTrue((mine == 0).all())
                    with ThreadPoolExecutor(1) as pool:
                        waiting = pool.submit(reduce.step, scene.PATIENCE)
                        second.step(timeout=scene.PATIENCE)
                        self.assertEqual(waiting.result().iteration, 1)
                    self.assertTrue((mine == 0.5).all() and (other == 0.5).all())

    def test_a_member_that_closes_lets_the_others_go_on(self):
        closed = threading.Event()

        def work(peers, rank):
            values = np.full(8, float(rank))
            with peers.reduce("model", values) as reduce:
                reduce.step(timeout=scene.PATIENCE)
                if rank == 1:
                    peers.close()  # closes the reduce, too
                    closed.set()
                    self.refused("NODE_STOPPED", "reduce model", reduce.step)
                    return values, None
                closed.wait(scene.PATIENCE)
                while True:
                    report = reduce.step(timeout=scene.PATIENCE)
                    if report.size == 1:
                        return values, report

        (first, report), (second, _) = self.members(2, work)
        self.assertTrue((first == 0.5).all() and (second == 0.5).all())
        self.assertEqual(report.expected, 0)

    def test_a_job_is_resumed_from_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder, self.session.peers("test/one", 1) as peers:
            path = os.path.join(folder, "state")
            model, momentum = np.arange(5.0), np.ones(3, "float32")
            options = dict(carried=[momentum], checkpoint=path, checkpoint_period=2)
            with peers.reduce("model", model, **options) as reduce:
                for _ in range(3):
                    model += 1
                    reduce.step()
                reduce.save(path + ".now")
            for name, iteration in (("", 2), (".now", 3)):
                model[:], momentum[:] = 0, 0
                with peers.reduce("again", model, carried=[momentum]) as reduce:
                    self.assertEqual(reduce.load(path + name), iteration)
                    self.assertEqual((model - np.arange(5.0)).tolist(), [iteration] * 5)
                    self.assertEqual(momentum.tolist(), [1, 1, 1])
                    self.assertEqual(reduce.step().iteration, iteration + 1)
                    self.refused("INVALID", "", reduce.load, path)
            with peers.reduce("other", np.zeros(4)) as reduce:
                self.refused("NOT_FOUND", "nothing", reduce.load, os.path.join(folder, "nothing"))
                self.refused("MISMATCH", "", reduce.load, path)

    def test_which_arrays_are_refused(self):
        peers = self.session.peers("test/one", 1)
        whole = np.zeros((4, 4))
        self.refused("INVALID", "expected NumPy arrays, got list", peers.reduce, "r", [[1.0, 2.0]])
        self.refused("UNSUPPORTED", "an array is int64; expected float32 or float64", peers.reduce, "r", np.zeros(3, "int64"))
        self.refused("INVALID", "C-contiguous", peers.reduce, "r", whole[:, 1])
        self.refused("INVALID", "share memory", peers.reduce, "r", [whole, whole[2]])
        self.refused("INVALID", "share memory", peers.reduce, "r", whole, carried=[whole[:1]])
        whole.flags.writeable = False
        self.refused("INVALID", "writable", peers.reduce, "r", whole)
        peers.reduce("r", [np.zeros((2, 2)), np.zeros(0), np.zeros(2, "float32")]).close()

    def test_which_options_are_refused(self):
        peers, values = self.session.peers("test/one", 1), np.zeros(4)
        self.refused("INVALID", "invalid mode='fast'; expected one of notify-ack, bsp, async", peers.reduce, "r", values, mode="fast")
        self.refused("INVALID", "invalid narrow=8", peers.reduce, "r", values, narrow=8)
        self.refused("INVALID", "invalid significant='much'", peers.reduce, "r", values, significant="much")
        self.refused("INVALID", "invalid first=-1", peers.reduce, "r", values, first=-1)
        self.refused("INVALID", "belong together", peers.reduce, "r", values, checkpoint="file")
        self.refused("INVALID", "spiral", peers.reduce, "r", values, graph="spiral")
        self.refused("INVALID", "", peers.reduce, "no/name", values)
        self.refused("UNSUPPORTED", "", peers.reduce, "r", values, mode="bsp", significant=0.1)
        with peers.reduce("r", values):
            self.refused("EXISTS", "r", peers.reduce, "r", values)
        with self.assertRaises(TypeError):
            peers.reduce("r", values, colour="red")

    def test_a_value_that_is_not_finite_is_named(self):
        with self.session.peers("test/one", 1) as peers:
            values = np.array([1.0, np.nan])
            with peers.reduce("r", values) as reduce:
                self.refused("DIVERGED", "", reduce.step)
                values[1] = 2
                self.assertEqual(reduce.step().iteration, 1)

    def test_one_thread_at_a_time(self):
        with self.session.peers("test/pair", 2) as peers, pawl.Session(self.session.address, key=KEY, peers_only=True) as session:
            with session.peers("test/pair", 2):
                reduce = peers.reduce("r", np.zeros(3))
                with ThreadPoolExecutor(1) as pool:
                    waiting = pool.submit(reduce.step)
                    while not reduce._stepping.locked():
                        pass
                    self.refused("INVALID", "another thread is in a step", reduce.step)
                    reduce.close()  # ends the step
                    with self.assertRaises(pawl.NodeError):
                        waiting.result(scene.PATIENCE)

    def test_a_reduce_that_was_not_closed_is_closed_when_it_is_collected(self):
        peers = self.session.peers("test/one", 1)
        peers.reduce("r", np.zeros(1000)).step()
        gc.collect()
        peers.reduce("r", np.zeros(1000)).step()  # EXISTS if the first were open
        peers.reduce("left", np.zeros(1000))
        del peers
        gc.collect()
        self.session.peers("test/one", 1).close()  # EXISTS if this session were a member


if __name__ == "__main__":
    scene.main()
