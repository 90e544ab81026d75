#!/usr/bin/python3
"""Completion in zsh and fish: the shells run what the command prints, and offer commands, options and files. zsh does so at a
terminal only: it gets one."""
# labels: nosan
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

PAWL = os.environ["PAWL_COMMAND"]
PATIENCE = 60  # seconds: a limit for what must come, not a time that is measured
WORK = tempfile.mkdtemp(prefix="pawl-completion-")

# The line, what is offered for its last word, and what is not. zsh repeats the line: no word of it is among the latter.
LINES = [
    ("pawl tr", ["train"], ["predict"]),
    ("pawl ", ["demo", "train", "predict", "model", "lda", "completion", "help"], []),
    ("pawl train ", ["logistic", "svm", "linear", "lda"], ["data.svm"]),
    ("pawl train logistic --", ["--l1", "--zero-based", "--separator", "--valid", "--json", "--help", "--verbose"], ["--topics"]),
    ("pawl train lda --stop", ["--stop-words"], ["--l1"]),
    ("pawl train logistic data.svm --l1 1 --no-", ["--no-bias"], ["--tau"]),
    ("pawl train logistic dat", ["data.svm"], ["svm"]),
    ("pawl train logistic --valid da", ["data.svm"], ["svm"]),
    ("pawl key ", ["new", "show", "add", "revoke", "token"], []),
    ("pawl help tra", ["train"], ["predict"]),
    ("pawl help key re", ["revoke"], ["new"]),
    ("pawl --ver", ["--version", "--verbose"], ["--help"]),
    ("pawl server dr", ["drain"], ["forget"]),
]


class Zsh:
    """A shell at a terminal of its own: a line is typed, and its choices are listed."""

    def __init__(self):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(WORK)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "xterm", "HOME": WORK, "LINES": "300", "COLUMNS": "80"})
        self.number = 0
        setup = "PROMPT='g''o> '; stty -echo rows 300 columns 80; LISTMAX=10000; fpath=(%s $fpath); autoload -Uz compinit; " % WORK
        setup += "compinit -u -D; bindkey '^D' list-choices; bindkey '^U' kill-whole-line"
        self.type(setup + "\n")
        self.read_until("go> ", "a prompt")  # before that keys are the terminal's

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, pattern, what):
        said, deadline = "", time.monotonic() + PATIENCE
        while not re.search(pattern, said, re.DOTALL):
            if time.monotonic() > deadline:
                raise AssertionError("zsh does not come to %s: %r" % (what, said))
            if select.select([self.terminal], [], [], 0.1)[0]:
                said += os.read(self.terminal, 65536).decode("utf-8", "replace")
        return said

    def offers(self, line):
        """The words in the list. The command that is run next says where it ends."""
        self.number += 1
        self.type(line + "\x04" + "\x15" + "print en''d-%d\n" % self.number)
        said = self.read_until("end-%d.*go> " % self.number, "the end of the list for '%s'" % line)
        said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x0f|\x00", "\n", said)
        rows = said.replace("\r", "\n").split("\n")
        return {word for row in rows if not row.startswith(("go> ", line)) for word in re.split(r"\s-- ", " " + row)[0].split()}

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


class Fish:
    def offers(self, line):
        script = 'source pawl.fish; complete -C "%s"' % line
        done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, cwd=WORK, timeout=PATIENCE,
                              env={**os.environ, "HOME": WORK}, check=True)
        return {offered.split("\t")[0] for offered in done.stdout.splitlines()}

    def end(self):
        pass


def check(name, shell):
    for line, wanted, unwanted in LINES:
        offered = shell.offers(line)
        missing = [word for word in wanted if word not in offered]
        assert not missing, "%s does not offer %s for '%s' but %s" % (name, missing, line, sorted(offered))
        wrong = [word for word in unwanted if word in offered]
        assert not wrong, "%s offers %s for '%s'" % (name, wrong, line)
    shell.end()
    print("%s: %d lines" % (name, len(LINES)))


def write(name, shell):
    with open(os.path.join(WORK, name), "w") as file:
        subprocess.run([PAWL, "completion", shell], stdout=file, check=True)


def main():
    shells = [("zsh", Zsh), ("fish", Fish)]
    found = [(name, shell) for name, shell in shells if shutil.which(name)]
    if not found:
        print("skipped: there is neither zsh nor fish (Debian: zsh, fish)")
        return 77
    write("_pawl", "zsh")
    write("pawl.fish", "fish")
    with open(os.path.join(WORK, "data.svm"), "w"):
        pass
    try:
        for name, shell in found:
            check(name, shell())
    finally:
        shutil.rmtree(WORK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
