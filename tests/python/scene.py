"""What the tests of the Python package share: the package of this source tree with the library of this build, and a look at
the processes behind a session. Without NumPy a test says so, and exits with 77."""

import os
import signal
import sys
import time
import unittest

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")
PACKAGE = os.path.join(SOURCE, "python")
PATIENCE = 200.0  # seconds, for tests that hang: nothing takes that long on a busy machine

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: there is no NumPy for %s (Debian: python3-numpy)" % sys.executable)
    sys.exit(77)

os.environ["PAWL_LIBRARY"] = os.path.join(BUILD, "libpawl.so")
os.environ["PYTHONPATH"] = PACKAGE
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
for name in ("PAWL_ADDRESS", "PAWL_KEY", "PAWL_KEY_FILE"):
    os.environ.pop(name, None)
sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)


def children(word):
    """The pids of this process' children whose command line has the word in it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read()
        except OSError:
            continue
        if parent == os.getpid() and word.encode() in words:
            found.append(int(pid))
    return found


def halt(pid):
    """Stops a process, and waits until each of its threads stands still."""
    os.kill(pid, signal.SIGSTOP)
    tasks = "/proc/%d/task" % pid

    def moves():
        for task in os.listdir(tasks):
            with open("%s/%s/stat" % (tasks, task)) as file:
                if file.read().rpartition(")")[2].split()[0] != "T":
                    return True
        return False

    while moves():
        time.sleep(0.0001)


class Test(unittest.TestCase):
    """Tests that know what a refusal should say."""

    def refused(self, name, text, call, *arguments, **more):
        """The call raises pawl.Error with the status of that name, and says it."""
        import pawl

        with self.assertRaises(pawl.Error) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.name, name, str(caught.exception))
        self.assertIn(text, caught.exception.particulars)
        return caught.exception


def main():
    unittest.main(module="__main__", verbosity=2)
