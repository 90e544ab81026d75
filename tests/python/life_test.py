#!/usr/bin/python3
"""What becomes of sessions, tasks and arrays when they are closed, dropped, forked, interrupted, or the cluster dies: an
exception, and never a crash."""
# labels: nosan
import gc
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

import scene

import numpy as np
import pawl


def run(text, *, send=None):
    """Runs a program in a process of its own: its exit code, and what it printed. A signal is sent when it says `now`."""
    words = [sys.executable, "-c", "import numpy as np, os, pawl, sys, threading, time\n" + text]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed = ""
    if send is not None:
        printed = process.stdout.readline()
        process.send_signal(send)
    printed += process.communicate(timeout=scene.PATIENCE)[0]
    return process.returncode, printed


class ClosedTest(scene.Test):
    def test_a_closed_session_refuses_everything(self):
        session = pawl.Session()
        w, group = session.ensure("a/b", size=10), session.group("a/g")
        keys, task = w.prepare([1, 2]), w.pull(wait=False)
        session.close()
        session.close()
        self.assertTrue(session.closed)
        self.assertEqual(task.wait().tolist(), [0] * 10)
        for call in (
            lambda: w.pull(),
            lambda: w.push([1], [1]),
            lambda: w.pull(keys),
            lambda: w.prepare([1]),
            lambda: w.filter("none"),
            lambda: w.flush_filters(),
            lambda: w.pull(after=task),
            lambda: group.barrier(),
            lambda: group.clock(),
            lambda: group.wait(1),
            lambda: group.push(w, [1], [1]),
            lambda: group.tick,
            lambda: group.rank,
            lambda: session.ensure("a/b"),
            lambda: session.open("a/b"),
            lambda: session.delete("a/b"),
            lambda: session.group("a/h"),
            lambda: session.flush(),
            lambda: session.figures(),
            lambda: session.status(),
            lambda: session.vectors(),
            lambda: session.node,
            lambda: session.__enter__(),
        ):
            self.refused("NODE_STOPPED", "is closed", call)
        for thing in (w, keys, group):
            thing.close()
        self.assertIn("closed", repr(session))

    def test_closed_vectors_keys_and_groups_are_refused_and_their_tasks_go_on(self):
        with pawl.Session() as session:
            w, group = session.ensure("a/b", size=10), session.group("a/g")
            keys = w.prepare([1])
            task = w.push([1], keys, wait=False)
            w.close(), keys.close(), group.close(), w.close()
            task.wait()
            self.refused("NODE_STOPPED", "vector a/b is closed", w.pull)
            self.refused("NODE_STOPPED", "group a/g is closed", group.clock)
            again = session.open("a/b")
            self.refused("NODE_STOPPED", "keys for a/b is closed", again.pull, keys)
            self.assertEqual(again.pull([1]).tolist(), [1])

    def test_handles_of_another_session_are_refused(self):
        with pawl.Session() as one, pawl.Session(one.address) as two:
            v, w = one.ensure("a/b", size=10), two.ensure("a/b", size=10)
            self.refused("INVALID", "another session", w.pull, v.prepare([1]))
            self.refused("INVALID", "must be tasks of this session", w.pull, after=[v.pull(wait=False)])
            self.refused("INVALID", "must be tasks of this session", w.pull, after=["a task"])
            self.refused("INVALID", "not a vector of this session", two.group("a/g").push, v, [1], [1])
            self.assertNotEqual(one.node, two.node)

    def test_a_session_that_cannot_be_opened_says_why(self):
        said = self.refused("LINK_REFUSED", "127.0.0.1:1", pawl.Session, "127.0.0.1:1", timeout=0.2)
        self.assertIsInstance(said, ConnectionError)
        self.refused("INVALID", "tcp://nowhere", pawl.Session, "tcp://nowhere", timeout=1)
        self.refused("INVALID", "need more servers", pawl.Session, servers=1, replicas=1)
        self.refused("INVALID", "servers=-1", pawl.Session, servers=-1)
        self.refused("NOT_FOUND", "/nowhere/key", pawl.Session, "127.0.0.1:1", key_file="/nowhere/key")

    def test_many_threads_use_and_close_one_session(self):
        session, trouble = pawl.Session(servers=2), []
        w, rounds, busy = session.ensure("a/b", "int64", 100), itertools.count(1), threading.Event()

        def work():
            try:
                while True:
                    w.push(np.ones(100, "int64"), wait=False)
                    w.pull([1, 2])
                    w.prepare([5])
                    if next(rounds) >= 100:
                        busy.set()
            except pawl.NodeError as stopped:
                if stopped.name != "NODE_STOPPED":
                    trouble.append(stopped)
            except BaseException as other:
                trouble.append(other)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.assertTrue(busy.wait(scene.PATIENCE))
        session.close()
        for thread in threads:
            thread.join(scene.PATIENCE)
        self.assertEqual(trouble, [])


class DroppedTest(scene.Test):
    def test_arrays_of_a_dropped_task_stay_until_it_has_finished(self):
        with pawl.Session(tcp_only=True) as session:
            w = session.ensure("a/b", "int64", 1 << 20)
            w.push(np.ones(1 << 20, "int64"))
            (server,) = scene.children("--join")
            scene.halt(server)
            values = np.ones(1 << 20, "int64")
            alive = weakref.ref(values)
            w.push(values, wait=False)  # large, so it is sent in place
            del values
            gc.collect()
            self.assertIsNotNone(alive())
            os.kill(server, signal.SIGCONT)
            session.flush(scene.PATIENCE)
            gc.collect()
            self.assertIsNone(alive())
            self.assertEqual(int(w.pull().sum()), 2 << 20)

    def test_dropped_handles_are_given_back(self):
        with pawl.Session() as session:
            for _ in range(200):
                w = session.ensure("a/b", size=10)
                w.prepare([1, 2])
                w.pull(wait=False)
                w.pull()  # when this has finished, so has the one before
            self.assertLess(len(session._gate.dropped), 20)
            session.flush()
            self.assertEqual(len(session._gate.dropped), 0)

    def test_a_session_that_nobody_closed_ends_with_its_program(self):
        code, printed = run("s = pawl.Session(); w = s.ensure('a/b', size=9); w.push(np.ones(9, 'f4'), wait=False); print('end')")
        self.assertEqual((code, printed), (0, "end\n"))
        code, printed = run("def f():\n  s = pawl.Session()\n  s.ensure('a/b', size=9).pull(wait=False)\nf(); f(); print('end')")
        self.assertEqual((code, printed), (0, "end\n"))
        self.assertEqual(scene.children("pawl"), [])

    def test_a_block_that_raises_closes_its_session(self):
        with self.assertRaises(ZeroDivisionError):
            with pawl.Session() as session:
                1 / 0
        self.assertTrue(session.closed)
        self.assertEqual(scene.children("pawl"), [])


class DeadTest(scene.Test):
    def test_waiting_ends_and_the_push_goes_on(self):
        with pawl.Session() as session:
            w = session.ensure("a/b", "int64", 10)
            w.push([1], [3])
            (server,) = scene.children("--join")
            scene.halt(server)
            task = w.push([1], [3], wait=False)
            said = self.refused("TIMED_OUT", "push to a/b", task.wait, 0.1)
            self.assertIsInstance(said, TimeoutError)
            self.refused("TIMED_OUT", "not finished after 0 s; it continues", task.wait, 0)
            self.refused("TIMED_OUT", "pull from a/b", w.pull, timeout=0.1)
            self.refused("TIMED_OUT", "not finished after 0.1 s", session.flush, 0.1)
            self.assertFalse(task.done())
            os.kill(server, signal.SIGCONT)
            task.wait(scene.PATIENCE)
            self.assertEqual(w.pull([3]).tolist(), [2])

    def test_a_dead_cluster_times_out_and_lets_go(self):
        session = pawl.Session(servers=2)
        w, group = session.ensure("a/b", size=1000), session.group("a/g")
        w.push(np.ones(1000, "float32"))
        for pid in scene.children("pawl"):
            os.kill(pid, signal.SIGKILL)
        task = w.push(np.ones(1000, "float32"), wait=False)
        self.refused("TIMED_OUT", "a/b", w.pull, timeout=0.3)
        self.refused("TIMED_OUT", "tick 1 of a/g", group.barrier, 0.3)
        self.assertRaises(pawl.Error, session.create, "a/c", timeout=0.3)
        self.assertRaises(pawl.Error, session.status, timeout=0.3)
        self.refused("TIMED_OUT", "not finished", session.close, 0.3)
        self.assertTrue(session.closed)
        self.refused("NODE_STOPPED", "push to a/b", task.wait)

    def test_closing_ends_the_waiting_of_other_threads(self):
        session, ends, begun = pawl.Session(), [], threading.Barrier(4)
        w, group = session.ensure("a/b", size=10), session.group("a/g", 2)  # whose second member never comes
        w.push([1], [3])
        os.kill(scene.children("--join")[0], signal.SIGKILL)  # what only it had is waited for
        unfinished = w.push([1], [3], wait=False)  # flush has something to wait for, whichever thread is first

        def wait(call):
            begun.wait(scene.PATIENCE)
            try:
                ends.append(call())
            except pawl.Error as failure:
                ends.append(failure.name)

        calls = (w.pull, group.barrier, session.flush)
        threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        begun.wait(scene.PATIENCE)
        deadline = time.monotonic() + scene.PATIENCE
        while session._gate._users < len(calls):  # until all of them are in their calls
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)
        self.refused("TIMED_OUT", "", session.close, 2)
        for thread in threads:
            thread.join(scene.PATIENCE)
        self.assertEqual(ends, ["NODE_STOPPED"] * 3)
        del unfinished

    def test_with_replicas_a_server_may_be_killed(self):
        with pawl.Session(replicas=1) as session:
            w = session.ensure("a/b", "int64", 100)
            w.push(np.arange(100))
            while session.status()["under_replicated"]:  # a busy machine may have cost a replica, which is filled again
                time.sleep(0.01)
            os.kill(scene.children("--join")[0], signal.SIGKILL)
            self.assertEqual(w.pull(timeout=scene.PATIENCE).tolist(), list(range(100)))


class ProcessTest(scene.Test):
    def test_a_forked_process_is_kept_out_and_harms_nobody(self):
        code, printed = run(
            "s = pawl.Session(); w = s.ensure('a/b', size=9); t = w.pull(wait=False)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "  try: w.pull()\n"
            "  except pawl.Error as e: print(e.particulars, flush=True)\n"
            "  del w, t; s.close(); sys.exit(0)\n"
            "os.waitpid(pid, 0); print(w.pull().sum(), t.wait().sum()); s.close()"
        )
        self.assertEqual(code, 0, printed)
        self.assertEqual(printed, "a session cannot be used in a forked process; open one there\n0.0 0.0\n")

    def test_another_process_joins_with_the_key(self):
        with tempfile.TemporaryDirectory() as folder:
            key = os.path.join(folder, "cluster.key")
            words = [os.environ.get("PAWL_COMMAND") or os.path.join(scene.BUILD, "pawl"), "key", "new", key]
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
            with pawl.Session(key_file=key) as session:
                w = session.ensure("a/b", "int64", 10)
                text = "with pawl.Session(%r, key_file=%r) as s: s.open('a/b').push([5], [3])"
                code, printed = run(text % (session.address, key))
                self.assertEqual((code, printed), (0, ""))
                self.assertEqual(w.pull([3]).tolist(), [5])
                for timeout in (1, 10, 100):  # a busy machine may need longer to be shut out; then it says TimedOut
                    code, printed = run("pawl.Session(%r, timeout=%d)" % (session.address, timeout))
                    self.assertEqual(code, 1)
                    if "TimedOut" not in printed:
                        break
                self.assertIn("LinkError", printed)

    def test_control_c_ends_a_wait_and_the_session_is_closed(self):
        text = (
            "with pawl.Session() as s:\n"
            "  g = s.group('a/g', 2)\n"
            "  %s"
            "  try: print('now', flush=True); %s\n"
            "  except KeyboardInterrupt: print('interrupted')\n"
        )
        stop = "import scene; w = s.ensure('a/b', size=9); w.pull(); os.kill(scene.children('--join')[0], 9); t = w.pull(wait=False)\n"
        begin = "sys.path.insert(0, %r)\n" % os.path.dirname(os.path.abspath(__file__))
        code, printed = run(text % ("\n", "g.barrier()"), send=signal.SIGINT)
        self.assertEqual((code, printed), (0, "now\ninterrupted\n"))
        text = text.replace("print('interrupted')", "print('interrupted'); s.close(0.1)")
        code, printed = run(begin + text % (stop, "t.wait()"), send=signal.SIGINT)
        self.assertEqual(code, 1)
        self.assertIn("interrupted", printed)
        self.assertIn("TimedOut", printed)


if __name__ == "__main__":
    scene.main()
