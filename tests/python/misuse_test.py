#!/usr/bin/python3
"""Random calls on random handles, open and closed, by several threads at once: whatever comes is an exception of pawl's, and
every push that was said to be done is there."""
# labels: nosan
import os
import random
import threading

import scene

import numpy as np
import pawl

SEED = int(os.environ.get("PAWL_SEED", "0")) or random.randrange(1, 2**32)
STEPS, THREADS, ROUNDS = 300, 3, 4


class Handles:
    """What there is to misuse: the newest few of each kind, most of them closed by somebody."""

    def __init__(self, session, luck):
        self.luck, self.sessions = luck, [session]
        self.vectors, self.keys, self.groups, self.tasks = [session.ensure("m/v", "int64", 100)], [], [], []

    def any(self, kind):
        return self.luck.choice(kind) if kind else None

    def add(self, kind, thing):
        kind.append(thing)
        if len(kind) > 8:
            kind.pop(self.luck.randrange(len(kind)))


def odd(luck):
    """Something that is seldom what is asked for."""
    return luck.choice([None, -1, 0, 3, 2**64, 1.5, "text", b"\0", [], [5, 3], [3, 5], np.zeros(2, "int64"), object(), (0, 5), {}])


def step(handles, counts):
    luck = handles.luck
    session, vector = handles.any(handles.sessions), handles.any(handles.vectors)
    keys, group, task = handles.any(handles.keys), handles.any(handles.groups), handles.any(handles.tasks)
    where = {"keys": luck.choice([keys, odd(luck), [1, 2, 3]])} if luck.random() < 0.7 else {"range": odd(luck)}
    after = luck.choice([(), (), [task], odd(luck)])

    def push():
        vector.push([1], [7], timeout=5)
        counts.append(1)

    calls = [
        push,
        lambda: handles.add(handles.tasks, vector.push(odd(luck), **where, after=after, wait=False)),
        lambda: handles.add(handles.tasks, vector.pull(**where, after=after, wait=False)),
        lambda: vector.pull(**where, out=odd(luck), timeout=5),
        lambda: vector.pushpull([0, 0, 0], **where, timeout=5),
        lambda: handles.add(handles.keys, vector.prepare(odd(luck))),
        lambda: handles.add(handles.keys, vector.prepare([1, 2, 3])),
        lambda: handles.add(handles.vectors, session.ensure("m/v", "int64", 100)),
        lambda: handles.add(handles.groups, session.group("m/g%d" % luck.randrange(9), timeout=5)),
        lambda: group.clock(wait=False),
        lambda: group.wait(odd(luck), 0.01),
        lambda: group.push(vector, [0, 0, 0], **where, timeout=0.01),
        lambda: handles.add(handles.tasks, group.pull(vector, **where, staleness=odd(luck), wait=False)),
        lambda: task.wait(0.01),
        lambda: repr(task),
        lambda: task.failures(),
        lambda: vector.close(),
        lambda: keys.close(),
        lambda: group.close(),
        lambda: session.figures(),
        lambda: session.open(odd(luck)),
        lambda: session.flush(0.01),
    ]
    try:
        luck.choice(calls)()
    except pawl.Error:
        pass
    except (AttributeError, TypeError):
        pass  # of None, or of what has no such thing: Python's own


class MisuseTest(scene.Test):
    def test_misuse_raises_and_never_crashes(self):
        print("PAWL_SEED=%d" % SEED, flush=True)
        luck = random.Random(SEED)
        first = pawl.Session(servers=2)
        for number in range(ROUNDS):
            session, trouble, counts = pawl.Session(first.address), [], []
            everything = [Handles(session, random.Random(luck.random())) for _ in range(THREADS)]
            for handles in everything[1:]:  # they share what the first one has
                handles.vectors, handles.keys, handles.groups = everything[0].vectors, everything[0].keys, everything[0].groups

            def work(handles):
                try:
                    for _ in range(STEPS):
                        step(handles, counts)
                except BaseException as other:
                    trouble.append(other)

            threads = [threading.Thread(target=work, args=(handles,)) for handles in everything]
            for thread in threads:
                thread.start()
            if number % 2:
                threads[0].join()
                self.close(session)  # under the others' feet
            for thread in threads:
                thread.join(scene.PATIENCE)
                self.assertFalse(thread.is_alive())
            self.close(session)
            self.assertEqual(trouble, [])
            for handles in everything:  # all of it is closed now
                for _ in range(STEPS):
                    step(handles, counts)
            first.ensure("m/sum", "int64", 1).push([len(counts)], [0])
        pushed = int(first.open("m/sum").pull([0])[0])
        self.assertGreater(pushed, 0)
        self.assertGreaterEqual(int(first.open("m/v").pull([7])[0]), pushed)
        first.close()

    def close(self, session):
        try:
            session.close(scene.PATIENCE)
        except pawl.Error as failure:  # of a push that nobody asked about
            self.assertNotIn(failure.name, ("TIMED_OUT", "NODE_STOPPED"))
        self.assertTrue(session.closed)


if __name__ == "__main__":
    scene.main()
