#!/usr/bin/python3
"""Collectives of NumPy arrays and buffers: members are threads with a session each."""
# labels: nosan
import array
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import scene

import numpy as np
import pawl

KEY = "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"


class CollectiveTest(scene.Test):
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
                    with peers.collective("main") as together:
                        return rank, work(together, rank)

        with ThreadPoolExecutor(count) as pool:
            return [result for _, result in sorted(pool.map(member, range(count)), key=lambda pair: pair[0])]

    def test_every_operation(self):
        def work(together, rank):
            for dtype in "float32", "float64":
                for shape in (7,), (40, 50, 20), (0,), ():
                    values = np.full(shape, rank + 1, dtype)
                    gathered = together.all_gather(values, timeout=scene.PATIENCE)
                    self.assertEqual(gathered.shape, (3, *shape))
                    self.assertTrue(all((gathered[i] == i + 1).all() for i in range(3)) and gathered.dtype == dtype)
                    for op, result in ("sum", 6), ("min", 1), ("max", 3):
                        reduced = together.all_reduce(values, op, timeout=scene.PATIENCE)
                        self.assertTrue((reduced == result).all() and reduced.shape == shape and reduced.dtype == dtype)
                        block = together.reduce_scatter(values, op, timeout=scene.PATIENCE)
                        each, more = divmod(values.size, 3)
                        self.assertTrue((block == result).all() and block.shape == (each + (rank < more),), block.shape)
                    self.assertTrue((values == rank + 1).all())
                    self.assertIs(together.all_reduce(values, out=values, timeout=scene.PATIENCE), values)
                    self.assertTrue((values == 6).all())
                    values[...] = rank
                    self.assertIs(together.broadcast(values, root=2, timeout=scene.PATIENCE), values)
                    self.assertTrue((values == 2).all())
            together.barrier(timeout=scene.PATIENCE)
            return together.state()

        for rank, state in enumerate(self.members(3, work)):
            self.assertIsInstance(state, pawl.CollectiveState)
            self.assertEqual((state.rank, state.size, state.failed), (rank, 3, None))
            self.assertEqual((state.operations, state.renewals), (2 * 4 * 9 + 1, 1))

    def test_the_place_in_the_result_is_gathered_in_place(self):
        def work(together, rank):
            whole = np.zeros((2, 5))
            whole[rank] = rank + 1
            self.assertIs(together.all_gather(whole[rank], out=whole, timeout=scene.PATIENCE), whole)
            return whole

        for whole in self.members(2, work):
            self.assertEqual(whole.tolist(), [[1.0] * 5, [2.0] * 5])

    def test_buffers_are_used_in_place(self):
        def work(together, rank):
            values = array.array("d", [rank, 2 * rank])
            together.all_reduce(values, out=values, timeout=scene.PATIENCE)
            frozen = bytes(np.array([1.0, 2.0]))
            total = together.all_reduce(memoryview(frozen).cast("d"), timeout=scene.PATIENCE)
            return values.tolist(), total.tolist()

        self.assertEqual(self.members(2, work), [([1, 2], [2, 4])] * 2)

    def test_a_call_that_times_out_goes_on_when_it_is_repeated(self):
        late = threading.Event()

        def work(together, rank):
            values = np.full(1000, float(rank + 1))
            if rank == 1:
                late.wait(scene.PATIENCE)
                return together.all_reduce(values, timeout=scene.PATIENCE), together.all_gather(values[:1], timeout=scene.PATIENCE)
            try:
                caught = self.refused("TIMED_OUT", "waits", together.all_reduce, values, timeout=0.01)
                self.assertIsInstance(caught, TimeoutError)
                self.refused("INVALID", "repeat it, or renew", together.barrier)
                self.refused("INVALID", "repeat it, or renew", together.all_reduce, values, "max")
                self.refused("TIMED_OUT", "waits", together.all_reduce, values, timeout=0)
            finally:
                late.set()
            return together.all_reduce(values, timeout=scene.PATIENCE), together.all_gather(values[:1], timeout=scene.PATIENCE)

        for total, gathered in self.members(2, work):
            self.assertTrue((total == 3).all())
            self.assertEqual(gathered.tolist(), [[1], [2]])

    def test_members_that_differ_are_named(self):
        def work(together, rank):
            return self.refused("MISMATCH", "node", together.all_reduce, np.zeros(4 + rank), timeout=scene.PATIENCE)

        for caught in self.members(2, work):
            self.assertIsInstance(caught, pawl.ArgumentError)

    def test_a_member_that_closes_lets_the_others_go_on_after_renew(self):
        def work(together, rank):
            together.barrier(timeout=scene.PATIENCE)
            if rank == 1:
                together._peers.close()  # closes the collective, too
                self.refused("NODE_STOPPED", "collective main", together.barrier)
                return None
            with self.assertRaises(pawl.Error) as caught:
                together.all_reduce(np.ones(3), timeout=scene.PATIENCE)
            name = caught.exception.name
            self.assertIn(name, ("NODE_GONE", "CANCELLED"))  # the second: the other one has renewed
            self.assertEqual(together.state().failed, name)
            self.refused(name, "", together.barrier)
            together.renew(timeout=scene.PATIENCE)
            return together.all_reduce(np.ones(3), timeout=scene.PATIENCE).tolist()

        self.assertEqual(self.members(3, work), [[2, 2, 2], None, [2, 2, 2]])

    def test_what_is_refused(self):
        peers = self.session.peers("test/one", 1)
        self.refused("INVALID", "letters, digits", peers.collective, "no/name")
        self.refused("INVALID", "letters, digits", peers.collective, "a" * 4000)
        together, whole = peers.collective("c"), np.zeros((4, 4))
        self.refused("EXISTS", "c", peers.collective, "c")
        self.refused("INVALID", "expected a NumPy array or a buffer, got list", together.all_reduce, [1.0])
        self.refused("UNSUPPORTED", "int64; expected float32 or float64", together.all_gather, np.zeros(3, "int64"))
        self.refused("INVALID", "C-contiguous", together.reduce_scatter, whole[:, 1])
        self.refused("INVALID", "invalid op='product'", together.all_reduce, whole, "product")
        self.refused("INVALID", "invalid root=-1", together.broadcast, whole, -1)
        self.refused("INVALID", "root is 1", together.broadcast, whole, 1)
        self.refused("INVALID", "overlap", together.all_reduce, whole[:2], out=whole[1:3])
        self.refused("INVALID", "out has 8 values", together.all_reduce, whole, out=whole[:2])
        self.refused("INVALID", "out has 20 values", together.all_gather, whole, out=np.zeros((5, 4)))
        frozen = np.zeros(3)
        frozen.flags.writeable = False
        self.refused("INVALID", "writable", together.broadcast, frozen)
        self.assertEqual(together.all_reduce(frozen).tolist(), [0, 0, 0])
        self.assertEqual(together.state().operations, 1)
        together.renew()
        self.assertEqual(together.state().renewals, 2)

    def test_one_thread_at_a_time(self):
        with self.session.peers("test/pair", 2) as peers, pawl.Session(self.session.address, key=KEY, peers_only=True) as session:
            with session.peers("test/pair", 2):
                together = peers.collective("c")
                with ThreadPoolExecutor(1) as pool:
                    waiting = pool.submit(together.barrier)
                    while not together._calling.locked():
                        pass
                    self.refused("INVALID", "another thread is in a call", together.barrier)
                    self.refused("INVALID", "another thread is in a call", together.renew)
                    together.close()  # ends the call
                    with self.assertRaises(pawl.NodeError):
                        waiting.result(scene.PATIENCE)

    def test_a_collective_that_was_not_closed_is_closed_when_it_is_collected(self):
        peers = self.session.peers("test/one", 1)
        peers.collective("c").barrier()
        gc.collect()
        peers.collective("c").barrier()  # EXISTS if the first were open


if __name__ == "__main__":
    scene.main()
