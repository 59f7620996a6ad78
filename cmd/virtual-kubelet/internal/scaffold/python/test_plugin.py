# SPDX-License-Identifier: Apache-2.0
"""The mapping of pods and of states, as tables."""
import json
import socket
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import plugin


def pod(**spec):
    return {"metadata": {"uid": "u1", "namespace": "default", "name": "web"}, "spec": {"nodeName": "n1", **spec}}


def run(code=None):
    return {"id": "1", "started": 1.0, "finished": 2.0, "code": code}


class Mapping(unittest.TestCase):
    def test_pods(self):
        for name, made, restart, containers in [
            ("one container", pod(restartPolicy="Never", containers=[{"name": "main", "image": "busybox", "command": ["sh", "-c"], "args": ["date"],
                                                                     "env": [{"name": "COLOR", "value": "green"}, {"name": "EMPTY"}]}]),
             "never", [{"name": "main", "image": "busybox", "command": ["sh", "-c", "date"], "env": ["COLOR=green", "EMPTY="]}]),
            ("the default policy", pod(containers=[{"name": "main"}]), "always", [{"name": "main", "image": "", "command": [], "env": []}]),
        ]:
            with self.subTest(name):
                want = {"id": "u1", "node": "n1", "namespace": "default", "name": "web", "pod": made, "restart": restart, "containers": containers}
                self.assertEqual(plugin.group_of(made), want)


class Status(unittest.TestCase):
    def test_every_state(self):
        for state, ran, phase, ready, reason, code in [
            ("creating", None, "Pending", "False", "ContainerCreating", None),
            ("running", run(), "Running", "True", None, None),
            ("waiting", run(1), "Running", "False", "CrashLoopBackOff", None),
            ("stopped", run(0), "Succeeded", "False", "Completed", 0),
            ("stopped", run(3), "Failed", "False", "Error", 3),
            ("stopped", run(), "Failed", "False", "ContainerStatusUnknown", plugin.UNKNOWN_EXIT),
            ("stopped", None, "Failed", "False", "ContainerStatusUnknown", plugin.UNKNOWN_EXIT),
            ("hibernating", None, "Pending", "False", "Unknown", None),
        ]:
            with self.subTest(state, code=code):
                c = {"name": "main", "image": "x", "state": state, "restarts": 0, "run": ran, "last": None}
                status = plugin.status_of({"created": 1.0, "address": "192.0.2.1", "containers": [c]})
                kind, said = next(iter(status["containerStatuses"][0]["state"].items()))
                conditions = {c["type"]: c["status"] for c in status["conditions"]}
                self.assertEqual((status["phase"], conditions["Ready"], said.get("reason"), said.get("exitCode")), (phase, ready, reason, code), kind)


class Service:
    """A service that has what a test puts into it."""

    def __init__(self, *groups):
        self.groups = {g["spec"]["id"]: g for g in groups}

    def list(self, node):
        return [g for g in self.groups.values() if g["spec"]["node"] == node]

    def remove(self, id):
        del self.groups[id]


def ended(id, node):
    """A group that has ended, and is not wanted any more."""
    spec = plugin.group_of({"metadata": {"uid": id, "namespace": "default", "name": "web"}, "spec": {"nodeName": node, "containers": [{"name": "main"}]}})
    c = {"name": "main", "image": "x", "state": "stopped", "restarts": 0, "run": run(0), "last": None}
    return {"spec": spec, "created": float(len(node)), "address": "192.0.2.1", "stopping": True, "containers": [c]}


class Context:
    """A call that goes on for so many questions whether it does."""

    def __init__(self, active):
        self.left = active

    def add_callback(self, callback):
        pass

    def is_active(self):
        self.left -= 1
        return self.left >= 0


class Nodes(unittest.TestCase):
    """Two nodes share a service, and have pods of the same name."""

    def setUp(self):
        self.service = Service(ended("u1", "n1"), ended("u2", "n2-created-later"))
        self.provider = plugin.Provider(self.service, 0)
        self.provider.Handshake(plugin.pb.HandshakeRequest(node_name="n1", node_json=b"{}"), None)

    def test_lists_are_of_one_node(self):
        told = [json.loads(p)["metadata"]["uid"] for answer in self.provider.GetPods(None, None) for p in answer.pods]
        self.assertEqual(told, ["u1"])
        self.assertEqual(self.provider.find("default", "web")["spec"]["id"], "u1")

    def test_usage_is_of_one_node(self):
        for g in self.service.groups.values():
            g["containers"][0]["state"] = "running"
        summary = json.loads(self.provider.GetStatsSummary(None, None).summary_json)
        self.assertEqual((summary["node"]["nodeName"], [p["podRef"]["uid"] for p in summary["pods"]]), ("n1", ["u1"]))

    def test_the_watch_removes_pods_of_its_node_only(self):
        told = [json.loads(p)["metadata"]["uid"] for report in self.provider.WatchPods(None, Context(3)) for p in report.pods]
        self.assertEqual((told, list(self.service.groups)), (["u1"], ["u2"]))

    def test_another_node_is_refused(self):
        with self.assertRaisesRegex(Exception, "n1.*n2"):
            self.provider.Handshake(plugin.pb.HandshakeRequest(node_name="n2", node_json=b"{}"), None)
        self.assertEqual(self.provider.node, "n1")

    def test_nothing_is_listed_before_the_node_is_known(self):
        with self.assertRaises(OSError):
            list(plugin.Provider(self.service, 0).GetPods(None, None))


class Session:
    """A command that ends as a test says: with a code, with None, or with an error."""

    def __init__(self, end):
        self.end = end

    def close_stdin(self):
        pass

    def kill(self):
        pass

    def wait(self):
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


class Exec(unittest.TestCase):
    def test_exit_codes(self):
        for end, code in [(0, 0), (3, 3), (None, plugin.UNKNOWN_EXIT), (OSError("lost"), plugin.UNKNOWN_EXIT)]:
            with self.subTest(end=end), unittest.mock.patch("threading.excepthook"):
                service = Service(ended("u1", "n1"))
                service.execute = lambda *_, end=end: Session(end)
                provider = plugin.Provider(service, 0)
                provider.Handshake(plugin.pb.HandshakeRequest(node_name="n1", node_json=b"{}"), None)
                start = plugin.pb.SessionStart(namespace="default", pod="web", container="main", command=["x"])
                said = list(provider.RunInContainer(iter([plugin.pb.SessionInput(start=start)]), Context(9)))
                self.assertEqual([s.exit_code for s in said], [code])


class Socket(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")  # the path of a socket has to be short
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "s"

    def test_a_file_stays(self):
        self.path.write_text("notes")
        with self.assertRaisesRegex(SystemExit, "not a socket"):
            plugin.make_way(self.path)
        self.assertEqual(self.path.read_text(), "notes")

    def test_the_socket_of_a_running_plugin_stays(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.path))
            server.listen()
            with self.assertRaisesRegex(SystemExit, "listens there already"):
                plugin.make_way(self.path)
        self.assertTrue(self.path.is_socket())

    def test_the_socket_of_a_killed_plugin_goes(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.path))
        plugin.make_way(self.path)
        self.assertFalse(self.path.exists())
        plugin.make_way(self.path)  # nothing is there


if __name__ == "__main__":
    unittest.main()
