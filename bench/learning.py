"""Shared by the benchmarks of learning: data, timed commands, and pictures.

Data comes from the folder `shared` beside the repository: compressed sets, and one that a script generates.
Both are stored in the chosen folder and found there the next time.
"""
import argparse
import ctypes
import json
import math
import os
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.basename(sys.argv[0])
PATIENCE = 900  # seconds for a command


def fail(what):
    sys.exit("%s: %s" % (BENCH, what))


def arguments(text):
    """A parser with the options that all of them have."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--pawl", default=os.path.join(ROOT, "build", "pawl"), help="the command; build/pawl")
    parser.add_argument("--shared", default=os.path.join(ROOT, "..", "shared"), help="where data and gen/ are; ../shared")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "pawl-bench-learn"),
                        help="where data is unpacked and made, 0.5 GB; it is kept for the next run")
    return parser


def prepare(options):
    options.pawl = os.path.abspath(options.pawl)
    if not os.access(options.pawl, os.X_OK):
        fail("there is no %s: run `make`, or name one with --pawl" % options.pawl)
    os.makedirs(options.folder, exist_ok=True)
    # What a command leaves behind when it ends becomes a child of this process, so that its processor time is
    # counted.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def need(tool, package):
    if not shutil.which(tool):
        fail("there is no %s: install Debian's %s (tools/deps bench does)" % (tool, package))
    return tool


# --- data ---------------------------------------------------------------------------------------------------


def generated(options, path):
    maker = os.path.join(options.shared, "gen", "gen_rcv1like.py")
    if not os.path.exists(maker):
        fail("rcv1like is made by %s, which is not there: name the folder with --shared" % maker)
    say("making %s, which takes half a minute" % path)
    part = os.path.join(options.folder, "part")
    if subprocess.run(["/usr/bin/python3", maker, part], stdout=sys.stderr).returncode:
        fail("%s failed; it needs Debian's python3-numpy and python3-scipy" % maker)
    os.remove(part + ".npz")
    os.rename(part + ".svm", path)


def unpacked(options, name, path, group="binary"):
    packed = os.path.join(options.shared, "data", group, name + ".zst")
    if not os.path.exists(packed):
        fail("there is no %s: name the folder with --shared" % packed)
    if subprocess.run([need("zstd", "zstd"), "-qdf", packed, "-o", path + ".part"]).returncode:
        fail("%s cannot be unpacked" % packed)
    os.chmod(path + ".part", 0o644)
    os.rename(path + ".part", path)


def data(options, name):
    """The path of a data set, which is unpacked or made if it is not there yet."""
    path = os.path.join(options.folder, name)
    if not os.path.exists(path):
        if name == "rcv1like.svm":
            generated(options, path)
        else:
            unpacked(options, name, path)
    return path


# --- commands -----------------------------------------------------------------------------------------------


class Watch:
    """A pipe in place of a file that a command writes a JSON object a line to: remembers when each came."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "log.%d" % os.getpid())
        if os.path.exists(self.path):
            os.remove(self.path)
        os.mkfifo(self.path)
        self.file = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)  # also for writing, so there is no EOF
        self.lines, self.rest = [], b""

    def look(self, begun, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return False
        now = time.monotonic() - begun
        self.rest += os.read(self.file, 1 << 16)
        *whole, self.rest = self.rest.split(b"\n")
        for line in whole:
            self.lines.append(dict(json.loads(line), at=now))
        return True

    def close(self):
        os.close(self.file)
        os.remove(self.path)


class Outcome:
    """Of a command: wall time, processor seconds of all its processes, its output, the lines of its log."""


def run(command, watch=None, check=True):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    begun = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    while watch and process.poll() is None and time.monotonic() - begun < PATIENCE:
        watch.look(begun, 0.02)
    try:
        process.wait(max(0, begun + PATIENCE - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.terminate()
        fail("%s\ndid not end in %d seconds" % (" ".join(command), PATIENCE))
    outcome = Outcome()
    outcome.wall = time.monotonic() - begun
    while watch and watch.look(begun, 0):
        pass
    reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    outcome.out, outcome.err = (text_of(file) for file in (out, err))
    outcome.code = process.returncode
    outcome.log = watch.lines if watch else []
    if check and outcome.code:
        fail("%s\nended with %d: %s" % (" ".join(command), outcome.code, outcome.err.strip()))
    return outcome


def text_of(file):
    file.seek(0)
    text = file.read().decode(errors="replace")
    file.close()
    return text


def reap():
    """Waits for what a command has left behind, three seconds at most."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return
    say("processes of the last command still run; their time is not counted")


def train(options, kind, path, model, *more, watch=None):
    """pawl train, without a bias: the figures of --json, with what was measured from outside."""
    command = [options.pawl, "train", kind, path, "--no-bias", "-o", model, "--json", "--quiet", *map(str, more)]
    if watch:
        command += ["--log", watch.path]
    outcome = run(command, watch)
    outcome.figures = json.loads(outcome.out)
    return outcome


def predict(options, model, path, *more):
    """The objective and the accuracy of a model, computed by `pawl predict`."""
    return json.loads(run([options.pawl, "predict", model, path, "--json", *map(str, more)]).out)


# --- what is printed ----------------------------------------------------------------------------------------


def say(what):
    print("%s: %s" % (BENCH, what), file=sys.stderr, flush=True)


def emit(**figures):
    """One JSON object a line."""
    for name, value in figures.items():
        if isinstance(value, float):
            figures[name] = float("%.6g" % value) if name != "objective" else round(value, 4)
    print(json.dumps(dict(bench=BENCH, **figures)), flush=True)


def table(head, rows):
    widths = [max(len(str(row[i])) for row in [head] + rows) for i in range(len(head))]
    for row in [head] + rows:
        print("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def load():
    return os.getloadavg()[0]


# --- pictures -----------------------------------------------------------------------------------------------

COLOURS = ["#4a7ab5", "#d9a441", "#5a9a5a", "#b5504a", "#7a5ab5", "#707070"]
WIDTH, HEIGHT, TOP, LEFT = 520, 300, 40, 70


def span(values, is_log, from_zero=True):
    low, high = min(values), max(values)
    if is_log:
        return math.floor(math.log10(low)), math.ceil(math.log10(high))
    return (0, high) if from_zero else (low, high)


def ticks(low, high, is_log):
    if is_log:
        return [10.0 ** i for i in range(low, high + 1)]
    step = 10 ** math.floor(math.log10(high - low or 1))
    while (high - low) / step < 4 and high > low:
        step /= 2
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def draw(path, title, x_name, y_name, curves, log_x=False, log_y=False, from_zero=True):
    """An SVG of curves: name -> list of points (x, y). Unless `from_zero`, the y axis begins at the minimum."""
    points = [point for curve in curves.values() for point in curve]
    xs, ys = span([x for x, _ in points], log_x), span([y for _, y in points], log_y, from_zero)

    def place(value, ends, is_log):
        value = math.log10(value) if is_log else value
        return (value - ends[0]) / ((ends[1] - ends[0]) or 1)

    def at(x, y):
        return LEFT + WIDTH * place(x, xs, log_x), TOP + HEIGHT * (1 - place(y, ys, log_y))

    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">'
           % (LEFT + WIDTH + 190, TOP + HEIGHT + 60), '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="18">%s</text>' % (LEFT, title)]
    for x in ticks(*xs, log_x):
        place_x = LEFT + WIDTH * place(x, xs, log_x)
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (place_x, TOP + HEIGHT + 18, x))
    for y in ticks(*ys, log_y):
        place_y = TOP + HEIGHT * (1 - place(y, ys, log_y))
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/>' % (LEFT, LEFT + WIDTH, place_y, place_y))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (LEFT - 6, place_y + 4, y))
    for i, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join("%.1f,%.1f" % at(x, y) for x, y in curve)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (line, colour))
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' % (LEFT + WIDTH + 12, TOP + 14 + 18 * i, colour, name))
    out.append('<text x="%d" y="%d">%s; upwards: %s</text>\n</svg>\n' % (LEFT, TOP + HEIGHT + 44, x_name, y_name))
    with open(path, "w") as file:
        file.write("\n".join(out))
    say("wrote %s" % path)
