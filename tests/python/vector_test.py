#!/usr/bin/python3
"""Arrays in, arrays out: by keys, ranges and prepared lists, in place where that can be, and what is refused."""
# labels: nosan
import pickle

import scene

import numpy as np
import pawl
from pawl import _arrays


class VectorTest(scene.Test):
    @classmethod
    def setUpClass(cls):
        cls.session = pawl.Session(servers=2)
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.session.close()

    def vector(self, *arguments, **options):
        """A new one."""
        type(self).count += 1
        return self.session.create("test/v%d" % self.count, *arguments, **options)

    # --- what works ---------------------------------------------------------------------------------------------------

    def test_a_push_is_added_and_a_pull_sees_it(self):
        w = self.vector(size=100)
        w.push([1, 2.5], keys=[3, 50])
        w.push(np.float32([1, 1]), keys=np.array([50, 99]))
        self.assertEqual(w.pull([3, 4, 50, 99]).tolist(), [1, 0, 3.5, 1])
        self.assertEqual(w.pull().sum(), 5.5)

    def test_every_type_comes_back_as_it_went(self):
        for dtype in ("float32", "float64", "int32", "int64", "uint64"):
            w = self.vector(dtype, 1000)
            values = np.arange(1000).astype(dtype)
            w.push(values)
            back = w.pull()
            self.assertEqual(back.dtype, np.dtype(dtype))
            self.assertTrue((back == values).all())
            self.assertEqual(w.dtype, np.dtype(dtype))
        self.assertEqual(self.vector("uint64", 2).pushpull([2**64 - 1, 7]).tolist(), [2**64 - 1, 7])

    def test_a_range_is_a_pair_a_slice_or_a_range(self):
        w = self.vector(size=100)
        w.push(np.arange(10, dtype="float32"), range=(20, 30))
        for bounds in ((22, 24), [22, 24], slice(22, 24), range(22, 24), np.array([22, 24])):
            self.assertEqual(w.pull(range=bounds).tolist(), [2, 3])
        self.assertEqual(w.pull(range=(0, 0)).size, 0)
        self.assertEqual(w.pull(range=(7, 7)).size, 0)
        self.assertEqual(w.pull([]).size, 0)
        w.push([], keys=[])

    def test_rows_of_a_width_are_rows(self):
        w = self.vector("float64", 10, width=3)
        w.push([[1, 2, 3], [4, 5, 6]], keys=[2, 7])
        self.assertEqual(w.pull([2, 7]).tolist(), [[1, 2, 3], [4, 5, 6]])
        self.assertEqual(w.pull().shape, (10, 3))
        w.push(np.arange(6.0), keys=[2, 7])  # flat will do
        self.assertEqual(w.pull([7]).tolist(), [[7, 9, 11]])

    def test_prepared_keys_are_used_again_and_limited_by_a_range(self):
        w = self.vector(size=100)
        with w.prepare([3, 5, 50]) as keys:
            self.assertEqual(len(keys), 3)
            for _ in range(3):
                w.push([1, 2, 3], keys)
            self.assertEqual(w.pull(keys).tolist(), [3, 6, 9])
            self.assertEqual(w.pull(keys, range=(4, 10)).tolist(), [0, 6, 0])
            self.assertEqual(w.pull(keys, range=(0, 0)).tolist(), [0, 0, 0])
            w.push([100, 100, 100], keys, range=(0, 4))
            self.assertEqual(w.pull().sum(), 118)
        self.refused("NODE_STOPPED", "keys for test/", w.pull, keys)

    def test_vectors_without_a_size_take_any_key(self):
        w = self.vector("int64")
        w.push([1, 2, 3], keys=np.array([0, 2**40, 2**64 - 2], dtype=np.uint64))
        self.assertEqual(w.pull([0, 1, 2**40, 2**64 - 2]).tolist(), [1, 0, 2, 3])
        self.refused("OUT_OF_SPAN", "", w.pull, [0, 2**64 - 1])
        self.refused("INVALID", "", w.pull, [0, 2**64])
        self.refused("INVALID", "no keys given", w.pull)
        self.refused("UNSUPPORTED", "ranges are not supported", w.pull, range=(0, 10))

    def test_rules_assign_or_take_steps(self):
        w = self.vector("float64", 10, function="assign")
        w.push([1.0, 2.0], keys=[1, 2])
        self.assertEqual(w.pushpull([5.0], keys=[1]).tolist(), [5])
        w = self.vector("float64", 10, rule="sgd rate=0.5")
        w.push([2.0], keys=[1])
        self.assertEqual(w.pull([1]).tolist(), [-1])
        w = self.vector("float64", 10, rule="block_proximal rate=1")
        self.assertEqual((w.pushed_width, w.width), (2, 1))
        w.push([[2.0, 4.0]], keys=[1])
        self.assertAlmostEqual(w.pull([1])[0], -0.5, 6)

    def test_filters_hold_back_and_are_flushed(self):
        w = self.vector(size=10, filters="significant(threshold=1)")
        w.push([0.25, 3], keys=[1, 2])
        self.assertEqual(w.pull([1, 2]).tolist(), [0, 3])
        w.flush_filters()
        self.assertEqual(w.pull([1, 2]).tolist(), [0.25, 3])
        w.filter("none")
        w.push([0.25], keys=[1])
        self.assertEqual(w.pull([1]).tolist(), [0.5])
        self.assertIn("significant", w.filters)

    def test_tasks_are_waited_for_and_come_after_others(self):
        w = self.vector(size=10)
        first = w.push(np.ones(10, "float32"), wait=False)
        second = w.pull(after=[first], wait=False)
        self.assertEqual(second.wait(scene.PATIENCE).tolist(), [1] * 10)
        self.assertTrue(first.done() and second.done())
        self.assertIsNone(first.wait())
        self.assertIn("pull from test/v", repr(second))
        self.assertEqual(w.pull(after=first)[0], 1)

    # --- in place -----------------------------------------------------------------------------------------------------

    def test_right_arrays_are_used_in_place(self):
        values, keys = np.ones(10, "float32"), np.arange(10, dtype=np.uint64)
        self.assertIs(_arrays.values("it", values, np.dtype("float32"), 10, 1), values)
        self.assertTrue(np.shares_memory(_arrays.keys("it", keys), keys))
        signed = np.arange(10)
        self.assertTrue(np.shares_memory(_arrays.keys("it", signed), signed))
        w, out = self.vector(size=10), np.empty(10, "float32")
        w.push(values)
        self.assertIs(w.pull(out=out), out)
        self.assertTrue((out == 1).all())
        self.assertIs(w.pushpull(out, out=out), out)
        self.assertTrue((out == 2).all())

    def test_other_arrays_are_copied_if_nothing_is_lost(self):
        w = self.vector("float64", 10)
        w.push(np.arange(20, dtype="float32")[::2])
        self.assertEqual(w.pull().tolist(), list(range(0, 20, 2)))
        w.push(np.arange(10, dtype=">f8"), keys=np.arange(20, dtype=np.int32)[::2] // 2)
        self.assertEqual(w.pull([3]).tolist(), [9])
        misaligned = np.frombuffer(b"x" + np.ones(10).tobytes(), dtype=np.uint8)[1:].view("float64")
        self.assertFalse(misaligned.flags.aligned)
        w.push(misaligned)
        self.assertEqual(w.pull([3]).tolist(), [10])

    # --- what is refused ----------------------------------------------------------------------------------------------

    def test_values_that_may_be_lost_are_refused(self):
        w = self.vector(size=10)
        self.refused("MISMATCH", "values are float64, which may not fit in the vector's float32", w.push, np.ones(10))
        self.refused("MISMATCH", "astype('float32')", w.push, np.ones(10, "int64"))
        counts = self.vector("int32", 10)
        self.refused("MISMATCH", "", counts.push, [0.5], [1])
        self.refused("MISMATCH", "", counts.push, [2**31], [1])
        self.refused("MISMATCH", "", self.vector("uint64", 10).push, [-1], [1])
        self.refused("INVALID", "not numeric", w.push, ["a"] * 10)
        self.refused("INVALID", "not numeric", w.push, np.ones(10, "complex64"))
        self.refused("INVALID", "not numeric", w.push, [None] * 10)
        self.refused("INVALID", "to an array", w.push, [[1, 2], [3]])
        self.refused("MISMATCH", "out is float64", w.pull, out=np.empty(10))
        self.refused("MISMATCH", "out is list", w.pull, out=[0] * 10)
        self.assertEqual(w.pull().sum(), 0)

    def test_memory_that_cannot_be_filled_in_place_is_refused(self):
        w = self.vector(size=10)
        fixed = np.empty(10, "float32")
        fixed.flags.writeable = False
        for out in (np.empty(20, "float32")[::2], fixed, np.empty((10, 2), "float32")[:, 0]):
            self.refused("INVALID", "must be C-contiguous", w.pull, out=out)
        self.refused("INVALID", "out has 9 values", w.pull, out=np.empty(9, "float32"))
        both = np.zeros(15, "float32")
        self.refused("INVALID", "overlap", w.pushpull, both[:10], out=both[5:])

    def test_sizes_that_do_not_fit_are_refused(self):
        w = self.vector(size=10, width=2)
        self.refused("INVALID", "3 values, but 2 keys of width 2 need 4", w.push, [1, 2, 3], [1, 2])
        self.refused("INVALID", "values, but 10 keys", w.push, [1])
        self.refused("INVALID", "1 values, but 0 keys", w.push, [1], [])

    def test_wrong_keys_are_refused_in_the_librarys_words(self):
        w = self.vector(size=10)
        said = self.refused("UNSORTED", "key 3 at position 1 is not above the one before", w.push, [1, 2], [5, 3])
        self.assertIsInstance(said, ValueError)
        self.assertEqual((said.group, said.text), ("argument", "keys are not in strictly ascending order"))
        self.refused("UNSORTED", "is not above the one before", w.pull, [5, 5])
        self.refused("UNSORTED", "", w.prepare, [5, 3])
        self.refused("OUT_OF_SPAN", "key 10 at position 1 is outside the span [0, 10)", w.pull, [5, 10])
        self.refused("OUT_OF_SPAN", "key -1 is negative", w.pull, [-1, 5])
        self.refused("OUT_OF_SPAN", "[5, 11) reaches beyond the span [0, 10)", w.pull, range=(5, 11))
        self.refused("OUT_OF_SPAN", "", w.pull, range=(0, 2**63))
        self.refused("INVALID", "integers", w.pull, [1.5])
        self.refused("INVALID", "integers", w.pull, np.zeros((2, 2), "int64"))
        for bounds in ((3, 2), (-1, 2), (0, 2**64), range(0, 10, 2), slice(None, 3), 5, "ab", (1, 2, 3), (0.5, 2)):
            self.refused("INVALID", "range", w.pull, range=bounds)
        self.refused("INVALID", "another vector", w.pull, self.vector(size=10).prepare([1]))

    def test_wrong_options_and_names_are_refused(self):
        make = self.session.create
        self.refused("INVALID", "expected one of float32", make, "a/b", "float16")
        self.refused("INVALID", "the name must be two words", make, "nonsense")
        self.refused("INVALID", "is not a string", make, 5)
        self.refused("INVALID", "contains a zero byte", make, "a/b\0c")
        self.refused("INVALID", "width", make, "a/b", width=-1)
        self.refused("INVALID", "width", make, "a/b", width=1.5)
        self.refused("INVALID", "function='multiply'; expected one of add, assign", make, "a/b", function="multiply")
        self.refused("INVALID", "300 characters", make, "a/b", rule="x" * 300)
        self.refused("INVALID", "has no parameter 'rates'", make, "a/b", rule="adagrad rates=1")
        self.refused("NOT_FOUND", "does not know server function 'flight'", make, "a/b", rule="flight")
        self.refused("UNSUPPORTED", "", make, "a/b", filters="flight")
        self.refused("NOT_FOUND", "open a/nothing", self.session.open, "a/nothing")
        self.refused("INVALID", "timeout", self.session.open, "a/nothing", timeout=-1)
        self.refused("INVALID", "timeout", self.session.open, "a/nothing", timeout="soon")
        self.assertRaises(TypeError, make, "a/b", colour="red")
        self.session.ensure("a/twice", size=5)
        self.session.ensure("a/twice", size=5)
        self.refused("EXISTS", "other options", self.session.ensure, "a/twice", size=6)
        self.refused("EXISTS", "", make, "a/twice", size=5)
        self.assertIn("a/twice", self.session.vectors("a"))
        self.session.delete("a/twice")
        self.assertEqual(self.session.vectors("a"), [])

    def test_a_refused_push_fails_its_task_and_says_where(self):
        w = self.vector("float64", 10, rule="sgd rate=1")
        task = w.push([np.nan], keys=[3], wait=False)
        self.refused("REFUSED", "push to test/v", task.wait)
        (begin, end, why), = task.failures()
        self.assertTrue(begin <= 3 < end and why.name == "REFUSED")
        self.refused("REFUSED", "", w.push, [np.inf], keys=[3])
        again = pickle.loads(pickle.dumps(why))
        self.assertEqual((type(again), again.status), (pawl.OperationError, why.status))
        w.push([np.nan], keys=[3], wait=False)  # and nobody asks
        self.refused("REFUSED", "push to test/v", self.session.flush)
        self.session.flush()
        self.assertEqual(w.pull([3]).tolist(), [0])


if __name__ == "__main__":
    scene.main()
