"""Shared by the hostile tests in Python: processes of the command, and checks of their results."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PAWL = os.environ["PAWL_COMMAND"]
PATIENCE = 200  # seconds: a limit for what must come, not a time that is measured
PATIENT = ("--timeout", "150")  # of a command that must get an answer: on a busy machine its own 5 s may pass
WORK = tempfile.mkdtemp(prefix="pawl-hostile-")


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_") or k == "PAWL_COMMAND"}
    return {**kept, **more}


def path(name):
    return os.path.join(WORK, name)


class Role:
    """A manager or server, with the address it is found at and that of its pages."""

    def __init__(self, *arguments, **more):
        if "--join" in arguments:
            arguments += ("--join-timeout", str(PATIENCE))
        read, write = os.pipe()
        self.log = tempfile.TemporaryFile("w+", dir=WORK)
        self.process = subprocess.Popen(
            [PAWL, *arguments, "--ready-fd", str(write)], stdout=self.log, stderr=subprocess.STDOUT,
            pass_fds=[write], env=environment(**more))
        os.close(write)
        with os.fdopen(read) as ready:
            line = ready.readline()
        assert line.startswith("ready address="), self.said()
        self.address = line.split("=", 1)[1].strip().removeprefix("tcp://")
        page = re.search(r"(https?)://(\S+):(\d+)/healthz", self.said())
        self.scheme, self.port = (page.group(1), int(page.group(3))) if page else (None, 0)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def run(*arguments, key=None, **more):
    """The command, as whoever holds this key."""
    if key:
        more["PAWL_KEY_FILE"] = key
    return subprocess.run([PAWL, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                          env=environment(**more), check=False)


def succeed(*arguments, key=None, **more):
    done = run(*arguments, key=key, **more)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def refuse(*arguments, key=None, **more):
    done = run(*arguments, key=key, **more)
    assert done.returncode != 0, f"{arguments}: {done.stdout}"
    return done.stderr


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)


def run_tests(names):
    try:
        for name, test in list(names.items()):
            if name.startswith("test_"):
                print(name, flush=True)
                test()
    finally:
        sys.stdout.flush()
        shutil.rmtree(WORK, ignore_errors=True)
