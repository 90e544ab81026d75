"""Shared by the benchmarks of topic models: corpora, training and evaluating models, and floors.

The generated corpus `ldalike` and the independent evaluator come from gen/ of the folder `shared`, the real
corpora from its data/topics. Corpora are stored in the chosen folder and found there the next time.
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy
import scipy.sparse

import learning as l

l.PATIENCE = 3600
ALPHA, BETA = 0.1, 0.01
TRAIN, TEST = "docword.ldalike.train.txt", "docword.ldalike.test.txt"
MADE = [TRAIN, TEST, "lda_train.npz", "lda_test.npz", "lda_phi_true.npy"]


# --- corpora ------------------------------------------------------------------------------------------------


def made(options, name):
    """A file of the corpus that gen_lda.py makes."""
    path = os.path.join(options.folder, name)
    if os.path.exists(path):
        return path
    maker = os.path.join(os.path.abspath(options.shared), "gen", "gen_lda.py")
    if not os.path.exists(maker):
        l.fail("ldalike is made by %s, which is not there: name the folder with --shared" % maker)
    l.say("making ldalike, which takes half a minute")
    with tempfile.TemporaryDirectory(dir=options.folder) as part:
        if subprocess.run(["/usr/bin/python3", maker], stdout=sys.stderr, cwd=part).returncode:
            l.fail("%s failed; it needs Debian's python3-numpy and python3-scipy" % maker)
        for file in MADE:
            os.rename(os.path.join(part, file), os.path.join(options.folder, file))
    return path


def corpus(options, name):
    """A real corpus, as LDA-C."""
    path = os.path.join(options.folder, name)
    if not os.path.exists(path):
        l.unpacked(options, name, path, "topics")
    return path


def split(options, name, every=10):
    """Splits a corpus without a test part: the paths of the training documents, and of every tenth document."""
    parts = [os.path.join(options.folder, "%s.%s" % (name, part)) for part in ("rest", "tenth")]
    if not all(map(os.path.exists, parts)):
        with open(corpus(options, name)) as file:
            rows = file.read().splitlines()
        for path, is_held_out in zip(parts, (False, True)):
            with open(path, "w") as file:
                file.writelines(row + "\n" for i, row in enumerate(rows) if (i % every == every - 1) == is_held_out)
    return parts


def matrix(path):
    """Documents by words, of a corpus of gen_lda.py."""
    return scipy.sparse.load_npz(path).tocsr()


# --- commands -----------------------------------------------------------------------------------------------


def train(options, paths, model, *more, topics=100, workers=2, servers=1, watch=None):
    """pawl train lda: the figures of --json, with what was measured from outside."""
    paths = [paths] if isinstance(paths, str) else paths
    command = [options.pawl, "train", "lda", *paths, "--topics", str(topics), "--out", model, "--alpha", str(ALPHA),
               "--beta", str(BETA), "--workers", str(workers), "--servers", str(servers), "--json", *map(str, more)]
    if watch and watch.path:
        command += ["--log", watch.path]
    shutil.rmtree(model + ".run", ignore_errors=True)  # of a run that was broken off
    outcome = l.run(command, watch)
    outcome.figures = json.loads(outcome.out)
    outcome.sampled = outcome.figures["tokens"] * outcome.figures["sweeps"]
    return outcome


def bytes_per_token(figures):
    """Sent and received by workers, for each token that was sampled."""
    sampled = figures["tokens"] * figures["sweeps"]
    return figures["bytes_sent"] / sampled, figures["bytes_received"] / sampled


def evaluate(options, model, path):
    """Held-out perplexity, and what else `pawl lda evaluate` says."""
    return json.loads(l.run([options.pawl, "lda", "evaluate", model, path, "--json"]).out)


def export(options, model):
    """Topics by words."""
    path = os.path.join(options.folder, "phi.npy")
    l.run([options.pawl, "lda", "export", model, "-o", path])
    phi = numpy.load(path)
    os.remove(path)
    return phi


def reference(options, phi, documents):
    """Perplexity by the evaluator of `shared`, which knows nothing of pawl."""
    path = os.path.join(options.shared, "gen", "ldaeval.py")
    if not os.path.exists(path):
        l.fail("there is no %s: name the folder with --shared" % path)
    spec = importlib.util.spec_from_file_location("ldaeval", path)
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing is left beside it
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = written
    return module.perplexity(phi.astype(numpy.float64), documents)


class Peaks:
    """Watches a running command: the peak memory of each of its processes, by role."""

    def __init__(self, log=None):
        self.log, self.path = log, log.path if log else None
        self.most = {}  # of a process: its role, and VmHWM in bytes
        self.next = 0

    @property
    def lines(self):
        return self.log.lines if self.log else []

    def look(self, begun, seconds):
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.1
            for pid in descendants(os.getpid()):
                self.take(pid)
        if self.log:
            return self.log.look(begun, seconds)
        time.sleep(seconds)
        return False

    def take(self, pid):
        try:
            with open("/proc/%d/cmdline" % pid) as file:
                words = file.read().split("\0")
            with open("/proc/%d/status" % pid) as file:
                peak = [line.split()[1] for line in file if line.startswith("VmHWM")]
        except OSError:  # it has ended
            return
        if peak and len(words) > 1:
            self.most[pid] = words[1], int(peak[0]) * 1024

    def of(self, role):
        return max([peak for name, peak in self.most.values() if name == role], default=0)


def descendants(root):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, left = [], [root]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


# --- floors -------------------------------------------------------------------------------------------------


class Floors:
    """What has to be reached, printed at the end."""

    def __init__(self):
        self.rows = []

    def most(self, what, value, floor, aim=None, form="%.4g"):
        self.add(what, value, floor, aim, form, "at most", lambda limit: value <= limit)

    def least(self, what, value, floor, aim=None, form="%.4g"):
        self.add(what, value, floor, aim, form, "at least", lambda limit: value >= limit)

    def add(self, what, value, floor, aim, form, word, is_met):
        verdict = "PASS" if is_met(floor) else "MISS"
        reached = "" if aim is None else "reached" if is_met(aim) else "not reached"
        self.rows.append([what, form % value, "%s %s" % (word, form % floor), verdict,
                          "" if aim is None else form % aim, reached])

    def show(self):
        """Whether all are met."""
        print()
        l.table(["", "measured", "floor", "", "aim", ""], self.rows)
        return all(row[3] == "PASS" for row in self.rows)
