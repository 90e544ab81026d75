#!/usr/bin/python3
"""Limited, revoked and greedy keys against a cluster: each has exactly its rights, and every order is audited."""
# labels: nosan
# cost: 20
import json
import os
import signal
import subprocess
import sys
import time

import scene
from scene import PATIENT, Role, path, refuse, succeed, until

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: there is no NumPy for %s (Debian: python3-numpy)" % sys.executable)
    sys.exit(77)


def new_key(name, *limits):
    succeed("key", "new", path(name), *limits)
    return path(name)


def name_of(key):
    return json.loads(succeed("key", "show", "--json", key).splitlines()[0])["name"]


class Cluster:
    """A manager and two servers with a key file that can be changed."""

    def __init__(self, *keys, options=()):
        self.file = new_key(f"cluster-{time.monotonic_ns()}.key")
        self.own = self.file + ".own"  # the cluster's own key, alone
        with open(self.file) as source, open(os.open(self.own, os.O_WRONLY | os.O_CREAT, 0o600), "w") as target:
            target.write(source.read())
        for key in keys:
            succeed("key", "add", self.file, key)
        self.audit = self.file + ".audit"
        common = ("--key-file", self.file, "--audit", self.audit, *options)
        self.manager = Role("manager", "--listen", "127.0.0.1:0", "--http", "none", "--data", "none", *common)
        self.servers = [Role("server", "--join", self.manager.address, "--http", "none", *common) for _ in range(2)]
        self.roles = [self.manager, *self.servers]
        until(lambda: self.status()["whole"], "a whole cluster")

    def status(self, key=None):
        return json.loads(succeed("status", "--json", *self.at(), key=key or self.own))

    def at(self):
        return ("--cluster", self.manager.address, *PATIENT)

    def reload(self):
        counts = [role.said().count("reload.") for role in self.roles]
        for role in self.roles:
            role.signal(signal.SIGHUP)
        for role, before in zip(self.roles, counts):
            until(lambda: role.said().count("reload.") > before, "a reload")

    def lines(self, *words):
        with open(self.audit) as file:
            return [line for line in file if all(word in line for word in words)]

    def end(self):
        for role in self.roles:
            role.end()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.end()


SESSION = """
import sys
import pawl
session = pawl.Session(%r, timeout=150)
vector = session.open(%r)
print("open", flush=True)
for line in sys.stdin:
    try:
        vector.push([1.0], [2], timeout=150)
        print("pushed", flush=True)
    except pawl.Error as error:
        print(error, flush=True)
"""


WAITER = """
import pawl
session = pawl.Session(%r, timeout=150)
group = session.group(%r, size=2)
print("open", flush=True)
try:
    group.barrier()
    print("passed", flush=True)
except pawl.Error as error:
    print(error, flush=True)
"""


class Session(subprocess.Popen):
    """Somebody who has a session open, and pushes when told to; or, with WAITER, waits at a barrier for ever."""

    def __init__(self, cluster, key, vector, program=SESSION):
        super().__init__([sys.executable, "-c", program % (cluster.manager.address, vector)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=scene.environment(PAWL_KEY_FILE=key, PYTHONPATH=os.path.join(SOURCE, "python"),
                                               PAWL_LIBRARY=os.path.join(BUILD, "libpawl.so")))

    def says(self):
        return self.stdout.readline().strip()

    def push(self):
        self.stdin.write("push\n")
        self.stdin.flush()
        return self.says()

    def end(self):
        self.kill()
        self.communicate()


# --- tests -------------------------------------------------------------------------------------------------------------


def test_limited_keys_can_give_no_orders():
    reader, ads = new_key("reader", "--read-only"), new_key("ads", "--space", "ads")
    with Cluster(reader, ads) as cluster:
        at = cluster.at()
        succeed("put", "ads/w", "1=2", "--create", *at, key=ads)
        node = str(cluster.status()["nodes"][0]["node"])
        orders = [
            ("server", "drain", node),
            ("server", "forget", node, "--lose-data"),
            ("checkpoint", "save", path("saved")),
        ]
        for key in (reader, ads):
            for order in orders:
                refuse(*order, *at, key=key)
        refuse("put", "ads/w", "1=3", *at, key=reader)
        refuse("put", "news/w", "1=3", "--create", *at, key=ads)
        assert all(n["state"] == "up" for n in cluster.status()["nodes"])
        for verb in ("DRAIN", "CHECKPOINT"):
            assert cluster.lines(f"verb={verb}", f"key:{name_of(ads)}", "outcome=FORBIDDEN"), "".join(cluster.lines("verb"))


def test_an_operator_operates_and_sees_no_values():
    operator = new_key("operator", "--operator")
    with Cluster(operator) as cluster:
        at = cluster.at()
        succeed("put", "ads/w", "1=2", "--create", *at, key=cluster.own)
        refuse("get", "ads/w", "1", *at, key=operator)
        refuse("put", "ads/w", "1=3", *at, key=operator)
        refuse("put", "ads/v", "1=3", "--create", *at, key=operator)
        assert succeed("get", "ads/w", "1", *at, key=cluster.own).split()[-1] == "2"
        node = str(cluster.status(operator)["nodes"][0]["node"])
        succeed("server", "drain", node, *at, key=operator)
        assert cluster.lines("verb=DRAIN", "rights=operator", "outcome=OK")


def test_a_revoked_key_is_shown_out_and_others_stay():
    kept, lost = new_key("kept", "--space", "ads"), new_key("lost", "--space", "ads")
    with Cluster(kept, lost) as cluster:
        at = cluster.at()
        succeed("put", "ads/w", "1=2", "--create", *at, key=kept)
        stays, goes = (Session(cluster, key, "ads/w") for key in (kept, lost))
        for session in (stays, goes):
            assert session.says() == "open"
            said = session.push()
            assert said == "pushed", said
        succeed("key", "revoke", cluster.file, name_of(lost))
        assert os.stat(cluster.file).st_mode & 0o777 == 0o600
        cluster.reload()
        until(lambda: cluster.lines("verb=REVOKE", name_of(lost)), "the links of the lost key are ended")
        assert not cluster.lines("verb=REVOKE", name_of(kept))
        refuse("get", "ads/w", "1", *at, "--timeout", "5", key=lost)
        succeed("get", "ads/w", "1", *at, key=kept)
        assert stays.push() == "pushed"
        assert goes.push() != "pushed"
        assert succeed("get", "ads/w", "2", *at, key=kept).split()[-1] == "3"
        stays.end()
        goes.end()


def test_calls_of_a_revoked_key_end_at_once():
    """A barrier without a deadline, to which nobody else comes; of a session that runs, and of one that is stopped meanwhile."""
    kept, lost = new_key("staying", "--space", "ads"), new_key("leaving", "--space", "ads")
    with Cluster(kept, lost) as cluster:
        waiters = [Session(cluster, lost, f"ads/crew{i}", WAITER) for i in range(2)]
        stays = Session(cluster, kept, "ads/others", WAITER)
        for session in (*waiters, stays):
            assert session.says() == "open"
        waiters[1].send_signal(signal.SIGSTOP)
        succeed("key", "revoke", cluster.file, name_of(lost))
        cluster.reload()
        assert "revoked" in waiters[0].says()
        waiters[1].send_signal(signal.SIGCONT)
        assert "revoked" in waiters[1].says()
        assert stays.poll() is None
        joins = Session(cluster, kept, "ads/others", WAITER)
        assert joins.says() == "open"
        assert joins.says() == "passed" and stays.says() == "passed"
        for session in (*waiters, stays, joins):
            session.end()


def test_a_bad_file_changes_nothing():
    ads = new_key("bad", "--space", "ads")
    with Cluster(ads) as cluster:
        with open(cluster.file) as file:
            good = file.read()
        for bad, mode in ((good + "nonsense\n", 0o600), ("", 0o600), (good, 0o644), (good + good.split()[-1] + "x\n", 0o600)):
            with open(cluster.file, "w") as file:
                file.write(bad)
            os.chmod(cluster.file, mode)
            cluster.reload()
            for role in cluster.roles:
                assert "reload.failed what=keys" in role.said()
            succeed("put", "ads/w", "1=2", "--create", *cluster.at(), key=ads)


def test_the_key_of_a_cluster_changes_without_a_restart():
    with Cluster() as cluster:
        at = cluster.at()
        succeed("put", "a/w", "1=2", "--create", *at, key=cluster.own)
        fresh, old = new_key("fresh"), name_of(cluster.own)
        for step in (("add", cluster.file, fresh), ("add", "--first", cluster.file, fresh), ("revoke", cluster.file, old)):
            succeed("key", *step)
            cluster.reload()
        refuse("get", "a/w", "1", *at, "--timeout", "5", key=cluster.own)
        assert succeed("get", "a/w", "1", *at, key=fresh).split()[-1] == "2"
        until(lambda: cluster.status(fresh)["whole"], "a whole cluster under the new key")
        server = Role("server", "--join", cluster.manager.address, "--http", "none", "--key-file", fresh)
        server.end()
        assert cluster.lines("verb=LINK", name_of(fresh), '"server"', "outcome=OK")


def test_who_is_past_a_quota_is_refused_and_others_go_on():
    greedy = new_key("greedy", "--space", "ads", "--memory", "1M", "--connections", "3")
    fast = new_key("fast", "--space", "fast", "--rate", "1k")
    modest = new_key("modest", "--space", "news")
    with Cluster(greedy, fast, modest) as cluster:
        at = cluster.at()
        many = "".join(f"{key * 977} 1\n" for key in range(200000))
        file = path("many")
        with open(file, "w") as out:
            out.write(many)
        sparse = ("--create", "--layout", "sparse", "--file", file, *at)
        said = refuse("put", "ads/w", *sparse, key=greedy)
        assert "memory quota" in said, said
        succeed("put", "news/w", *sparse, key=modest)
        succeed("put", "fast/w", *sparse, key=fast)  # it overdraws its account, once
        said = refuse("put", "fast/w", "1=1", *at, key=fast)
        assert "quota of bytes per second" in said, said
        # Who pushes with another key into the same space meets the same quota.
        assert "memory quota" in refuse("put", "ads/v", *sparse, key=cluster.own)
        sessions = [Session(cluster, greedy, "ads/w") for _ in range(4)]
        until(lambda: cluster.lines("verb=LINK", name_of(greedy), "outcome=QUOTA_LINKS"), "one connection too many")
        succeed("get", "news/w", "0", *at, key=modest)
        for session in sessions:
            session.end()


def test_the_audit_is_one_line_each_whatever_clients_say():
    ads = new_key("writer", "--space", "ads")
    with Cluster(ads) as cluster:
        at = cluster.at()
        refuse("put", "ads/a b\nverb=LINK identity=root \"\x1b[31m\xff", "1=2", "--create", *at, key=ads)
        succeed("put", "ads/w", "1=2", "--create", *at, key=ads)
        assert cluster.lines("verb=CREATE", f"key:{name_of(ads)}", 'object="ads/w"', "peer=tcp://127.0.0.1:", "outcome=OK")
        secret = open(ads).read().split("pawl1-")[-1].split()[0]
        with open(cluster.audit) as file:
            text = file.read()
        assert os.stat(cluster.audit).st_mode & 0o777 == 0o600
        assert secret not in text
        for line in text.splitlines():
            assert line.isprintable() and line.count("verb=") >= 1 and " identity=" in line, line
        # A file that is moved away is begun anew.
        os.rename(cluster.audit, cluster.audit + ".1")
        cluster.reload()
        succeed("put", "ads/v", "1=2", "--create", *at, key=ads)
        until(lambda: os.path.exists(cluster.audit) and cluster.lines('object="ads/v"'), "lines in the new file")


def test_names_of_other_spaces_are_hidden():
    ads, reader = new_key("one", "--space", "ads"), new_key("both", "--space", "news", "--read-only")
    with Cluster(ads, reader) as cluster:
        at = cluster.at()
        succeed("put", "ads/w", "1=2", "--create", *at, key=ads)
        succeed("put", "news/secret-plan", "1=2", "--create", *at, key=cluster.own)
        succeed("put", "other/hidden", "1=2", "--create", *at, key=cluster.own)
        for key, shown, hidden in ((ads, ["ads/w"], ["secret-plan", "hidden"]),
                                   (reader, ["news/secret-plan"], ["ads/w", "hidden"])):
            texts = [json.dumps(cluster.status(key)), succeed("get", "--list", *at, key=key)]
            for text in texts:
                assert all(name in text for name in shown) and not any(name in text for name in hidden), text
            assert succeed("get", shown[0], "1", *at, key=key).split()[-1] == "2"
        everything = json.dumps(cluster.status())
        assert "secret-plan" in everything and "ads/w" in everything and "other/hidden" in everything
        # A name that is hidden is told apart from one that is not there by nobody.
        theirs, nothing = (refuse("get", name, "1", *at, key=ads) for name in ("other/hidden", "other/nothing"))
        assert theirs.replace("hidden", "") == nothing.replace("nothing", ""), (theirs, nothing)
        # What is made later is shown to those who may see it.
        succeed("put", "ads/later", "1=2", "--create", *at, key=cluster.own)
        assert "ads/later" in succeed("get", "--list", *at, key=ads)
        assert "ads/later" not in succeed("get", "--list", *at, key=reader)


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, cwd=scene.WORK, capture_output=True)


def certify(name, alternative="DNS:localhost"):
    if not os.path.exists(path("ca.crt")):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.pem", "-out", "ca.crt", "-days", "2",
                "-subj", "/CN=authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.pem", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    with open(path("extension"), "w") as file:
        file.write(f"subjectAltName=IP:127.0.0.1,{alternative}\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.pem", "-CAcreateserial", "-days", "2",
            "-extfile", "extension", "-out", f"{name}.crt")
    return ("--certificate", path(f"{name}.crt"), "--private-key", path(f"{name}.pem"), "--authority", path("ca.crt"))


def test_certificates_have_the_rights_of_their_names():
    node, dashboard, stranger = certify("node-1"), certify("d7", "DNS:dashboard.example.org"), certify("stranger")
    trainer, sly = certify("ads-trainer"), certify("sly,node-1")
    rights, audit = path("rights"), path("certificates.audit")

    def write(text):
        with open(rights, "w") as file:
            file.write(text)

    write("# name        rights\nnode-1\ndashboard.example.org read-only\nads-trainer space=ads\n")
    assert "--certificate" in refuse("manager", "--listen", "127.0.0.1:0", "--data", "none", "--rights", rights)
    common = ("--rights", rights, "--audit", audit, "--http", "none")
    manager = Role("manager", "--listen", "127.0.0.1:0", "--data", "none", *node, *common)
    server = Role("server", "--join", manager.address, *node, *common)
    try:
        at = ("--cluster", manager.address, *PATIENT)
        until(lambda: json.loads(succeed("status", "--json", *at, *node))["ready"], "a cluster that is ready")
        succeed("put", "ads/w", "1=2", "--create", *at, *trainer)
        refuse("put", "news/w", "1=2", "--create", *at, *trainer)
        assert succeed("get", "ads/w", "1", *at, *dashboard).split()[-1] == "2"
        refuse("put", "ads/w", "1=3", *at, *dashboard)
        for nobody in (stranger, sly):
            refuse("get", "ads/w", "1", *at, "--timeout", "5", *nobody)
        write("node-1\n* none\n")
        for role in (manager, server):
            before = role.said().count("reload.done what=keys")
            role.signal(signal.SIGHUP)
            until(lambda: role.said().count("reload.done what=keys") > before, "a reload")
        refuse("get", "ads/w", "1", *at, "--timeout", "5", *dashboard)
        assert succeed("get", "ads/w", "1", *at, *node).split()[-1] == "2"
        with open(audit) as file:
            lines = file.read()
        assert "identity=cert:d7,localhost" in lines or "identity=cert:d7,dashboard.example.org" in lines, lines
    finally:
        server.end()
        manager.end()


scene.run_tests(globals())
