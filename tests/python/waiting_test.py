#!/usr/bin/python3
"""The only server of a cluster dies, and with it the only copy of everything: every call that waits says so, with the way out."""
# labels: nosan
import os
import signal
import threading
import time
import warnings

import scene

import pawl

WAITS, WAY_OUT = "have the only copy: node 1", "pawl server forget --all-lost"


def kill_server(session):
    (server,) = scene.children("--join")
    os.kill(server, signal.SIGKILL)
    deadline = time.monotonic() + scene.PATIENCE
    while time.monotonic() < deadline:
        try:
            session.check()
        except pawl.ClusterError:
            return
        time.sleep(0.01)
    raise AssertionError("nobody has noticed")


class WaitingTest(scene.Test):
    def setUp(self):
        self.session = pawl.Session(servers=1)
        self.w, self.group = self.session.ensure("a/w", size=10), self.session.group("a/g")
        self.session.check()
        kill_server(self.session)

    def tearDown(self):
        try:
            self.session.close(0)
        except pawl.TimedOut:
            pass

    def test_time_outs_say_whom_they_wait_for(self):
        other = self.session.group
        for call in (
            lambda: self.w.push([1], [1], timeout=0.2),
            lambda: self.w.pull(timeout=0.2),
            lambda: self.w.push([1], [1], wait=False).wait(0.2),
            lambda: self.group.barrier(timeout=0.2),
            lambda: self.group.wait(7, timeout=0.2),
            lambda: self.session.flush(timeout=0.2),
            lambda: other("a/h", timeout=0.2),
        ):
            self.refused("TIMED_OUT", WAITS, call)
            self.refused("TIMED_OUT", WAY_OUT, call)
        self.assertIn(WAY_OUT, self.refused("CLUSTER_WAITING", WAITS, self.session.check).particulars)
        self.assertIn(WAY_OUT, self.refused("TIMED_OUT", WAITS, self.session.close, 0.2).particulars)

    def test_who_waits_for_ever_is_told_once(self):
        def wait():
            try:
                self.w.pull()
            except pawl.Error:
                pass  # the session is closed

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            thread = threading.Thread(target=wait)
            thread.start()
            deadline = time.monotonic() + scene.PATIENCE
            while not caught and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.5)  # several more looks
            try:
                self.session.close(1)
            except pawl.TimedOut:
                pass
            thread.join(scene.PATIENCE)
        self.assertFalse(thread.is_alive())
        self.assertEqual([w.category for w in caught], [pawl.ClusterWarning])
        self.assertIn(WAITS, str(caught[0].message))
        self.assertIn(WAY_OUT, str(caught[0].message))


if __name__ == "__main__":
    scene.main()
