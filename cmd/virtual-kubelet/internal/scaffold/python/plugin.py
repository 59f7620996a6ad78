#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin of virtual-kubelet: pods are groups of containers at skeleton. See README.md.

It keeps nothing: every answer comes from one list of the service, so a restart finds each pod as it is, and an error of the service is
never an empty list.
"""
import argparse
import json
import os
import queue
import signal
import socket
import stat
import threading
import time
import uuid
from concurrent import futures
from datetime import datetime, timezone
from pathlib import Path

import grpc
import provider_pb2 as pb

from failures import Invalid, NotFound

SERVICE = pb.DESCRIPTOR.services_by_name["Provider"]
UNKNOWN_EXIT = 137  # of what ended nobody knows how; it is not 0
VOLUMES = ["EmptyDir", "MemoryEmptyDir", "ObjectVolumes", "TokenVolumes", "HostPath", "PersistentVolume", "CSIVolumes", "OtherVolumes"]


def open_service(_args):
    # FILL(client): return a client of your service with the methods of memory.Memory called here. It raises NotFound, Invalid, or an OSError
    # for all other errors. Delete memory.py when the contract has another backend.
    import memory
    return memory.Memory()


def declaration():
    # FILL(capabilities): name every feature of your service in has=[…]; the contract then asks for a check that proves it. For each
    # other feature, write the reason why it is missing, as users should read it.
    lacks = [(f, "skeleton has no volumes: set automountServiceAccountToken to false, and take configuration from the environment") for f in VOLUMES]
    lacks += [(f, "skeleton runs one set of containers, all at once") for f in ("InitContainers", "Sidecars")]
    return pb.Declaration(lacks=[pb.FeatureNote(feature=f, note=why) for f, why in lacks])


def group_of(pod):
    """Returns the service's request for a pod with a resolved environment."""
    # FILL(mapping): map each field to a request of your service. A field that it cannot have is an INVALID_ARGUMENT.
    spec, metadata = pod["spec"], pod["metadata"]
    return {
        "id": metadata["uid"], "node": spec["nodeName"], "namespace": metadata["namespace"], "name": metadata["name"], "pod": pod,
        "restart": {"Never": "never", "OnFailure": "on-failure"}.get(spec.get("restartPolicy"), "always"),
        "containers": [{
            "name": c["name"], "image": c.get("image", ""), "command": c.get("command", []) + c.get("args", []),
            "env": [f"{e['name']}={e.get('value', '')}" for e in c.get("env", [])]} for c in spec["containers"]]}


def status_of(group):
    """Returns the status of a pod from the service's answer."""
    # FILL(status): give every state of your service a line, unknown ones too. An unknown exit code is not 0.
    containers = [container_status(c) for c in group["containers"]]
    states = [c["state"] for c in group["containers"]]
    if states and all(s == "stopped" for s in states):
        ended = [c["state"]["terminated"]["exitCode"] for c in containers]
        phase = "Failed" if any(ended) else "Succeeded"
    else:
        phase = "Running" if any(s in ("running", "stopped", "waiting") for s in states) else "Pending"
    ready = phase == "Running" and all(c["ready"] for c in containers)
    conditions = {"PodScheduled": True, "Initialized": True, "ContainersReady": ready, "Ready": ready}
    return {"phase": phase, "podIP": group["address"], "podIPs": [{"ip": group["address"]}], "startTime": stamp(group["created"]),
            "conditions": [{"type": kind, "status": str(holds)} for kind, holds in conditions.items()], "containerStatuses": containers}


def container_status(c):
    runs = c["state"] == "running"
    status = {"name": c["name"], "image": c["image"], "imageID": c["image"], "restartCount": c["restarts"], "ready": runs, "started": runs, "lastState": {}}
    if c["run"]:
        status["containerID"] = "skeleton://" + c["run"]["id"]
    if c["last"]:
        status["lastState"] = {"terminated": terminated(c["last"])}
    if runs:
        status["state"] = {"running": {"startedAt": stamp(c["run"]["started"])}}
    elif c["state"] == "stopped":
        status["state"] = {"terminated": terminated(c["run"])}
    elif c["state"] == "waiting":
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "the container waits for its next run"}}
        status["lastState"] = {"terminated": terminated(c["run"])}
    elif c["state"] == "creating":
        status["state"] = {"waiting": {"reason": "ContainerCreating"}}
    else:
        status["state"] = {"waiting": {"reason": "Unknown", "message": "skeleton says that the container is " + c["state"]}}
    return status


def terminated(run):
    run = run or {"id": "", "started": None, "finished": None, "code": None}
    said = {"startedAt": stamp(run["started"]), "finishedAt": stamp(run["finished"]), "containerID": "skeleton://" + run["id"]}
    if run["code"] is None:
        return {**said, "exitCode": UNKNOWN_EXIT, "reason": "ContainerStatusUnknown", "message": "skeleton does not say how the container ended"}
    return {**said, "exitCode": run["code"], "reason": "Error" if run["code"] else "Completed"}


def stamp(seconds):
    return seconds and datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_of(group):
    return json.dumps({**group["spec"]["pod"], "status": status_of(group)}).encode()


class Provider:
    """Implements the service Provider of the protocol; the methods have the protocol's names."""

    def __init__(self, service, poll):
        self.service, self.poll, self.instance, self.changed = service, poll, uuid.uuid4().hex, threading.Condition()
        self.node = None  # its name, which the Handshake says

    def groups(self):
        """Returns the groups of this node. The groups of other users of the service must not be seen, or they would be removed."""
        if self.node is None:
            raise OSError("no node did a Handshake yet, so nobody knows whose pods are asked for")
        return self.service.list(self.node)

    def find(self, namespace, name):
        """Returns the group of a pod, or the newest group while an older pod of the name stops."""
        found = [g for g in self.groups() if (g["spec"]["namespace"], g["spec"]["name"]) == (namespace, name)]
        if not found:
            raise NotFound(f"pod {namespace}/{name} is not at skeleton")
        return max(found, key=lambda g: g["created"])

    def id(self, request):
        """Returns the ID of the group with the container of a request."""
        group = self.find(request.namespace, request.pod)
        if request.container not in [c["name"] for c in group["spec"]["containers"]]:
            raise NotFound(f"pod {request.namespace}/{request.pod} has no container {request.container}")
        return group["spec"]["id"]

    def wake(self):
        with self.changed:
            self.changed.notify_all()

    def Handshake(self, request, context):
        if self.node not in (None, request.node_name):
            raise Invalid(f"this plugin has the pods of the node {self.node}: start another one for {request.node_name}, with a socket of its own")
        self.node = request.node_name
        node, now = json.loads(request.node_json), stamp(time.time())
        # FILL(capacity): ask your service what the account may use.
        capacity = {"cpu": "20", "memory": "100Gi", "ephemeral-storage": "400Gi", "pods": "20"}
        conditions = [{"type": kind, "status": str(kind == "Ready"), "reason": "Skeleton", "lastHeartbeatTime": now, "lastTransitionTime": now}
                      for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")]
        node.setdefault("status", {}).update(capacity=capacity, allocatable=capacity, conditions=conditions)  # Ping says when it is not Ready
        return pb.HandshakeResponse(
            protocol_version=1, name="plugin-skeleton", version="1", instance=self.instance, encoding=pb.ENCODING_JSON,
            node_json=json.dumps(node).encode(), declaration=declaration(), abilities=[
                pb.ABILITY_PING, pb.ABILITY_REPORTS, pb.ABILITY_AUTHORITY, pb.ABILITY_LOGS, pb.ABILITY_EXEC, pb.ABILITY_ATTACH,
                pb.ABILITY_PORT_FORWARD, pb.ABILITY_STATS])

    def Alive(self, request, context):
        return pb.AliveResponse(complete=True)  # a list is complete, or an error

    def Ping(self, request, context):
        self.service.request()
        return pb.PingResponse()

    def CreatePod(self, request, context):
        self.service.create(group_of(json.loads(request.pod)))
        self.wake()
        return pb.PodDone()

    def UpdatePod(self, request, context):
        pod = json.loads(request.pod)
        self.service.update(pod["metadata"]["uid"], pod)
        return pb.PodDone()

    def DeletePod(self, request, context):
        pod = json.loads(request.pod)
        grace = pod["metadata"].get("deletionGracePeriodSeconds", pod["spec"].get("terminationGracePeriodSeconds", 30))
        self.service.stop(pod["metadata"]["uid"], grace)
        self.wake()
        return pb.PodDone()

    def GetPod(self, request, context):
        return pb.PodAnswer(pod=pod_of(self.find(request.namespace, request.name)))

    def GetPodStatus(self, request, context):
        return pb.StatusAnswer(status=json.dumps(status_of(self.find(request.namespace, request.name))).encode())

    def GetPods(self, request, context):
        for group in self.groups():
            yield pb.PodsAnswer(pods=[pod_of(group)])
        yield pb.PodsAnswer(complete=True)

    def WatchPods(self, request, context):
        """Reports changed pods, by one list for all of them, and removes ended groups that are no longer wanted."""
        context.add_callback(self.wake)
        told = {}
        yield pb.PodsReport()
        while context.is_active():
            try:
                groups = self.groups()
            except OSError:  # Ping says so
                groups = []
            for group in groups:
                id, status = group["spec"]["id"], status_of(group)
                if told.get(id) != status:
                    told[id] = status
                    yield pb.PodsReport(pods=[pod_of(group)])
                if group["stopping"] and status["phase"] in ("Succeeded", "Failed") and context.is_active():
                    try:
                        self.service.remove(id)
                        told.pop(id)
                    except (OSError, NotFound):
                        pass  # the next round
            with self.changed:
                self.changed.wait(self.poll)

    def lines(self, request, context, follow, since, tail=0):
        log = self.service.log(self.id(request), request.container, getattr(request, "previous", False))

        def wake():
            with log.changed:
                log.changed.notify_all()

        context.add_callback(wake)
        return log.read(since, tail, follow, context.is_active)

    def GetContainerLogs(self, request, context):
        since = 0
        if request.since_time:
            since = datetime.fromisoformat(request.since_time).timestamp() * 1e9
        if request.since_seconds:
            since = time.time_ns() - request.since_seconds * 10**9
        lines, left = self.lines(request, context, request.follow, since, request.tail), request.limit_bytes or None
        yield pb.Chunk()
        for at, line in lines:
            if request.timestamps:
                line = f"{stamp(at // 10**9)[:-1]}.{at % 10**9:09}Z ".encode() + line
            yield pb.Chunk(data=line[:left])
            if left is not None:
                left -= len(line)
                if left <= 0:
                    return

    def RunInContainer(self, requests, context):
        start, out = next(requests).start, queue.Queue()
        session = self.service.execute(
            self.id(start), start.container, list(start.command),
            lambda data: out.put(pb.SessionOutput(stdout=data)), lambda data: out.put(pb.SessionOutput(**{"stdout" if start.tty else "stderr": data})))
        context.add_callback(session.kill)
        if not start.stdin:
            session.close_stdin()

        def feed():
            try:
                for request in requests:
                    kind = request.WhichOneof("input")
                    if kind == "stdin":
                        session.stdin(request.stdin)
                    elif kind == "resize":
                        session.resize(request.resize.height, request.resize.width)
                    elif kind == "stdin_closed":
                        session.close_stdin()
            except grpc.RpcError:
                pass  # the node has gone
            session.close_stdin()

        def run():
            code = None
            try:
                code = session.wait()
            finally:
                out.put(pb.SessionOutput(exit_code=UNKNOWN_EXIT if code is None else code))

        for task in (feed, run):
            threading.Thread(target=task, daemon=True).start()
        while True:
            message = out.get()
            yield message
            if message.WhichOneof("output") == "exit_code":
                return

    def AttachToContainer(self, requests, context):
        """Shows the new output of a container. There is no input: InteractiveContainers is not declared."""
        for _, line in self.lines(next(requests).start, context, True, time.time_ns()):
            yield pb.SessionOutput(stdout=line)
        yield pb.SessionOutput(exit_code=0)

    def PortForward(self, requests, context):
        start = next(requests).start
        answer = self.service.dial(self.find(start.namespace, start.pod)["spec"]["id"], start.port)
        for request in requests:
            yield pb.Chunk(data=answer(request.data))

    def GetStatsSummary(self, request, context):
        # FILL(stats): add the measurements of your service. Without numbers kubectl top has nothing to show.
        pods = [{"podRef": {"name": g["spec"]["name"], "namespace": g["spec"]["namespace"], "uid": g["spec"]["id"]}, "startTime": stamp(g["created"]),
                 "containers": [{"name": c["name"], "startTime": stamp(c["run"]["started"])} for c in g["containers"] if c["state"] == "running"]}
                for g in self.groups()]
        summary = {"node": {"nodeName": self.node, "startTime": stamp(time.time())}, "pods": [p for p in pods if p["containers"]]}
        return pb.StatsAnswer(summary_json=json.dumps(summary).encode())


def handler(provider):
    """Serves the methods of provider as the service. Only the messages must be generated."""
    kinds = {(False, False): grpc.unary_unary_rpc_method_handler, (False, True): grpc.unary_stream_rpc_method_handler,
             (True, True): grpc.stream_stream_rpc_method_handler}
    client_streams = {"Lookups", "RunInContainer", "AttachToContainer", "PortForward"}
    server_streams = client_streams | {"GetPods", "WatchPods", "WatchNode", "GetContainerLogs"}
    handlers = {}
    for method in SERVICE.methods:
        function = getattr(provider, method.name, None)
        if function is None:
            continue  # gRPC answers that it is unimplemented
        streams = method.name in server_streams
        handlers[method.name] = kinds[method.name in client_streams, streams](
            (stream_errors if streams else errors)(function),
            request_deserializer=getattr(pb, method.input_type.name).FromString,
            response_serializer=getattr(pb, method.output_type.name).SerializeToString)
    return grpc.method_handlers_generic_handler(SERVICE.full_name, handlers)


def fail(context, error):
    if isinstance(error, NotFound):  # lists are complete, so it does not exist
        context.set_trailing_metadata((("virtualkubelet-error-bin", pb.ErrorDetail(not_found=True, complete=True).SerializeToString()),))
        context.abort(grpc.StatusCode.NOT_FOUND, str(error))
    if isinstance(error, Invalid):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    context.abort(grpc.StatusCode.INTERNAL, str(error))  # UNAVAILABLE would say that the plugin cannot be reached


def errors(function):
    def call(request, context):
        try:
            return function(request, context)
        except (NotFound, Invalid, OSError) as error:
            fail(context, error)
    return call


def stream_errors(function):
    def call(request, context):
        try:
            yield from function(request, context)
        except (NotFound, Invalid, OSError) as error:
            fail(context, error)
    return call


def make_way(path):
    """Removes the socket of a killed plugin. Other files stay, such as the socket of a running plugin."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SystemExit(f"--socket {path}: there is something that is not a socket: name another path")
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:  # nobody listens
            path.unlink()
        except OSError as error:
            raise SystemExit(f"--socket {path}: there is a socket, and whose it is cannot be seen: name another path: {error}")
        else:
            raise SystemExit(f"--socket {path}: a program listens there already: stop it, or name another path")


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--socket", required=True, type=Path, help="path of the socket to listen on")
    flags.add_argument("--poll", type=float, default=2, help="seconds between two looks for pods that changed")
    # FILL(config): add the settings of your service, such as --endpoint and --token-file. No credential is an argument: every user of the
    # machine sees arguments.
    args = flags.parse_args()
    make_way(args.socket)
    service = open_service(args)
    # Followed logs, exec and the watch keep a thread each, made on demand. A node has 2,000 sessions at most
    # (--max-streams), and calls and signs of life must never wait for them.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2500), options=[
        ("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20)])
    server.add_generic_rpc_handlers((handler(Provider(service, args.poll)),))
    os.umask(0o177)  # the socket is for this user only
    server.add_insecure_port(f"unix://{args.socket.absolute()}")
    os.umask(0o077)
    server.start()
    print(f"listening on {args.socket}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(1))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
