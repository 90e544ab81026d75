#!/usr/bin/python3
"""Peer groups: members without servers, each in a thread with a session of its own."""
# labels: nosan
import threading
from concurrent.futures import ThreadPoolExecutor

import scene

import pawl

MEMBERS = 3


class PeersTest(scene.Test):
    def setUp(self):
        self.session = pawl.Session(peers_only=True, rack="here")
        self.addCleanup(self.session.close)

    def test_a_temporary_cluster_for_peers_has_a_manager_and_no_servers(self):
        self.assertEqual(len(scene.children("manager")), 1)
        self.assertEqual(scene.children("--join"), [])  # only servers have it

    def test_members_agree_on_number_and_ranks(self):
        def member(rack):
            with pawl.Session(self.session.address, peers_only=True, rack=rack) as session:
                with session.peers("test/ring", MEMBERS) as ring:
                    ring.wait(timeout=scene.PATIENCE)
                    state = ring.state()
                    found = ring.members(), state, session.node
                    seen.wait(scene.PATIENCE)  # nobody leaves before all have seen the others
                    return found

        seen = threading.Barrier(MEMBERS)
        with ThreadPoolExecutor(MEMBERS) as pool:
            results = list(pool.map(member, ["north", "south", "west"]))
        self.assertEqual(len({state.number for _, state, _ in results}), 1)
        self.assertEqual(sorted(state.rank for _, state, _ in results), [0, 1, 2])
        for members, state, node in results:
            self.assertEqual(members, results[0][0])
            self.assertEqual((state.size, state.founders, state.complete), (MEMBERS, MEMBERS, True))
            self.assertEqual(members[state.rank].node, node)
        self.assertEqual(sorted(one.rack for one in results[0][0]), ["north", "south", "west"])

    def test_a_change_ends_the_waiting(self):
        ring = self.session.peers("test/pair", 2)
        self.refused("TIMED_OUT", "1 of 2 founding members", ring.wait, 0, 0.1)
        with pawl.Session(self.session.address, peers_only=True) as other:
            with other.peers("test/pair", 2):
                ring.wait(timeout=scene.PATIENCE)
                number = ring.number
                self.assertEqual((ring.size, ring.rank), (2, 0))
            ring.wait(number, scene.PATIENCE)
        self.assertEqual(ring.size, 1)

    def test_what_is_refused(self):
        self.refused("INVALID", "size is 0", self.session.peers, "test/none", 0)
        self.refused("INVALID", "join", self.session.peers, "nonsense", 1)
        ring = self.session.peers("test/one", 1)
        self.refused("INVALID", "is not a number", ring.wait, -1)
        self.refused("EXISTS", "test/one", self.session.peers, "test/one", 1)
        w = self.session.ensure("test/w", size=3)
        self.refused("UNSUPPORTED", "peers only", w.push, [1], [1])
        self.refused("UNSUPPORTED", "peers only", self.session.group, "test/group", 1)
        self.refused("INVALID", "rack", pawl.Session, self.session.address, peers_only=True, rack="r" * 65)


if __name__ == "__main__":
    scene.main()
