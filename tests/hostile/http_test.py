#!/usr/bin/python3
"""Slow and misbehaving HTTP clients do not block a health check or a scrape; strangers see nothing else.

Runs against a manager and a server started as by users. Honest clients ask during every attack.
"""
import os
import socket
import ssl
import subprocess
import threading
import time

import scene
from scene import PAWL, PATIENCE, WORK, Role

CROWD = 200


def dial(port, timeout=PATIENCE):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout)


def hear(connection):
    heard = b""
    try:
        while piece := connection.recv(65536):
            heard += piece
    except ConnectionError:
        pass
    return heard


def code_of(heard):
    return int(heard[9:12]) if heard.startswith(b"HTTP/1.") else 0


def get(port, path, *headers, papers=None):
    """The code of the answer, or 0 if there is none. A role hangs up on requests that take 5 s; if that was so because the
    machine stood still, the question is put again."""
    while True:
        since = time.monotonic()
        code = ask(port, path, *headers, papers=papers)
        if code or time.monotonic() - since < 4:
            return code


def ask(port, path, *headers, papers=None):
    with dial(port) as connection:
        if papers:
            connection = papers.wrap_socket(connection)
        lines = [f"GET {path} HTTP/1.1", "Host: here", "Connection: close", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode())
        return code_of(hear(connection))


# --- attacks: each opens one connection and begins what it will not end ------------------------------------------------


def silent(connection):
    pass


def slow_headers(connection):
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\nX-Slow: ")


def slow_body(connection):
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n")


def slow_post(connection):
    connection.sendall(b"POST /metrics HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")


def pipelining(connection):
    connection.setblocking(False)
    try:
        for _ in range(200):
            connection.sendall(50 * b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    except OSError:
        pass


def huge_headers(connection):
    connection.setblocking(False)
    try:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n" + 4000 * b"X-Much: aaaaaaaaaaaaaaaaaaaaaaaa\r\n")
    except OSError:
        pass


def tls_opening(connection):
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


ATTACKS = [silent, slow_headers, slow_body, slow_post, pipelining, huge_headers, tls_opening]


class Trickle(threading.Thread):
    """Sends a byte on each connection, again and again, and opens another wherever one was ended."""

    def __init__(self, port, attack):
        super().__init__()
        self.port, self.attack, self.over, self.ended = port, attack, False, 0
        self.connections = [self.begin() for _ in range(CROWD)]

    def begin(self):
        connection = dial(self.port)
        try:
            self.attack(connection)
        except OSError:
            pass
        return connection

    def run(self):
        while not self.over:
            for i, connection in enumerate(self.connections):
                try:
                    connection.settimeout(0.01)
                    connection.sendall(b"a")
                except TimeoutError:
                    pass
                except OSError:
                    connection.close()
                    self.ended += 1
                    self.connections[i] = self.begin()
                if self.over:
                    break
            time.sleep(0.05)

    def end(self):
        self.over = True
        self.join()
        for connection in self.connections:
            connection.close()


def assail(role, *headers):
    for attack in ATTACKS:
        attacker = Trickle(role.port, attack)
        attacker.start()
        try:
            for _ in range(10):
                assert get(role.port, "/healthz") in (200, 503), f"no health during {attack.__name__}"
                assert get(role.port, "/metrics", *headers) == 200, f"no metrics during {attack.__name__}"
            deadline = time.monotonic() + PATIENCE
            while attacker.ended == 0:
                assert time.monotonic() < deadline, f"nobody was hung up on: {attack.__name__}"
                time.sleep(0.1)
        finally:
            attacker.end()
        assert role.process.poll() is None


def test_health_is_answered_during_attacks():
    manager = Role("manager", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", "none")
    server = Role("server", "--join", manager.address, "--http", "127.0.0.1:0")
    try:
        for role in (manager, server):
            before = role.descriptors()
            assail(role)
            deadline = time.monotonic() + PATIENCE
            while role.descriptors() > before + 4:
                assert time.monotonic() < deadline, "descriptors are not given back"
                time.sleep(0.1)
    finally:
        server.end()
        manager.end()


# --- strangers ---------------------------------------------------------------------------------------------------------


def test_an_address_of_others_needs_a_token():
    common = ("manager", "--listen", "127.0.0.1:0", "--data", "none", "--http", "0.0.0.0:0")
    said = scene.refuse(*common)
    assert "--http-token" in said and "pawl key token" in said, said
    token = os.path.join(WORK, "token")
    subprocess.run([PAWL, "key", "token", token], check=True, stdout=subprocess.DEVNULL)
    assert os.stat(token).st_mode & 0o777 == 0o600
    with open(token) as file:
        secret = file.read().split()[-1]
    os.chmod(token, 0o644)
    assert "chmod 600" in scene.refuse(*common, "--http-token", token)
    os.chmod(token, 0o600)
    manager = Role(*common, "--http-token", token)
    try:
        bearer = f"Authorization: Bearer {secret}"
        assert get(manager.port, "/healthz") in (200, 503)
        assert get(manager.port, "/metrics") == 401
        assert get(manager.port, "/metrics", bearer[:-1]) == 401
        assert get(manager.port, "/metrics", bearer + "0") == 401
        assert get(manager.port, "/metrics", bearer) == 200
        assert secret not in manager.said()
        assail(manager, bearer)
    finally:
        manager.end()


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, cwd=WORK, capture_output=True)


def sign(name, authority):
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.pem", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    with open(os.path.join(WORK, "san"), "w") as file:
        file.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.pem",
            "-CAcreateserial", "-days", "2", "-extfile", "san", "-out", f"{name}.crt")


def make_authority(name):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.pem", "-out", f"{name}.crt",
            "-days", "2", "-subj", f"/CN={name}")


def papers_of(name):
    context = ssl.create_default_context(cafile=os.path.join(WORK, "authority.crt"))
    context.check_hostname = False
    if name:
        context.load_cert_chain(os.path.join(WORK, f"{name}.crt"), os.path.join(WORK, f"{name}.pem"))
    return context


def test_with_certificates_the_pages_are_encrypted():
    make_authority("authority")
    make_authority("stranger")
    sign("node", "authority")
    sign("other", "stranger")
    path = {name: os.path.join(WORK, name) for name in ("node.crt", "node.pem", "authority.crt")}
    manager = Role("manager", "--listen", "127.0.0.1:0", "--data", "none", "--http", "0.0.0.0:0",
                   "--certificate", path["node.crt"], "--private-key", path["node.pem"],
                   "--authority", path["authority.crt"])
    try:
        assert manager.scheme == "https"
        assert get(manager.port, "/healthz") == 0  # plain
        assert get(manager.port, "/healthz", papers=papers_of(None)) in (200, 503)
        assert get(manager.port, "/metrics", papers=papers_of(None)) == 401
        assert get(manager.port, "/metrics", papers=papers_of("other")) == 401
        assert get(manager.port, "/metrics", papers=papers_of("node")) == 200
    finally:
        manager.end()


scene.run_tests(globals())
