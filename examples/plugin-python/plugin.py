#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A provider in Python: containers are processes of this machine, without isolation. See README.md.

Everything about a pod is a file below the state directory, so that the pod is the same after this program was killed:
the processes go on, and each writes its exit code itself. A pod that ends takes its process group with it.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import uuid
from concurrent import futures
from datetime import datetime, timezone
from pathlib import Path

import grpc
import provider_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Provider"]
TICK = 0.2  # seconds between two looks at the processes
# The process that is kept for a container: it writes how its command ended, also when nobody is there to wait for it.
# It outlives the signal that stops the command, and so does what writes that.
SUPERVISE = 'trap : TERM; cd "$1" || exit; (exec "${@:2}") >log 2>&1; code=$?; trap "" TERM; echo "$code $(date +%s)" >exit.new; mv exit.new exit'


def now():
    return stamp(time.time())


def stamp(seconds):
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(path, text):
    """Replaces a file at once, so that a kill leaves the old one or the new one."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def start_time(pid):
    """When the process began, in ticks since the boot; None if it has ended. It tells a process from a later one of its number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


class Container:
    """A container of a pod; its directory has the files pid, log and exit."""

    def __init__(self, directory, spec):
        self.directory, self.spec, self.name = directory, spec, spec["name"]

    def environment(self):
        return {"PATH": os.environ["PATH"], **{e["name"]: e.get("value", "") for e in self.spec.get("env", [])}}

    def start(self):
        if (self.directory / "pid").exists():
            return  # a second CreatePod, or this program was killed in the first one
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log").touch()  # logs are asked for before the process has opened it
        command = self.spec.get("command", []) + self.spec.get("args", [])
        process = subprocess.Popen(
            ["bash", "-c", SUPERVISE, "bash", str(self.directory), *command], env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        write(self.directory / "pid", f"{process.pid} {start_time(process.pid)} {int(time.time())}")
        threading.Thread(target=process.wait, daemon=True).start()

    def identity(self):
        return (self.directory / "pid").read_text().split()

    def alive(self):
        try:
            pid, began, _ = self.identity()
        except (OSError, ValueError):
            return False
        return start_time(pid) == began

    def signal(self, number):
        if self.alive():
            try:
                os.killpg(int(self.identity()[0]), number)
            except ProcessLookupError:
                pass

    def status(self):
        said = {"name": self.name, "image": self.spec.get("image", ""), "imageID": "", "restartCount": 0, "ready": False}
        try:
            pid, _, began = self.identity()
        except (OSError, ValueError):
            return {**said, "state": {"waiting": {"reason": "ContainerCreating"}}}
        identity = f"python://{self.directory.parent.name}/{self.name}/{pid}"
        said["containerID"], alive = identity, self.alive()
        if alive and not (self.directory / "exit").exists():
            return {**said, "ready": True, "started": True, "state": {"running": {"startedAt": stamp(int(began))}}}
        # Killed with its supervisor: nobody knows the code. It is not 0.
        code, ended, reason = 137, int(began), "Unknown"
        if (self.directory / "exit").exists():
            code, ended = map(int, (self.directory / "exit").read_text().split())
            reason = "Completed" if code == 0 else "Error"
        return {**said, "state": {"terminated": {"exitCode": code, "reason": reason, "containerID": identity,
                                                 "startedAt": stamp(int(began)), "finishedAt": stamp(ended)}}}


class Pod:
    """A pod; its directory is named by its UID and has the file pod.json and the directories of its containers."""

    def __init__(self, directory, spec):
        self.directory, self.spec = directory, spec
        self.containers = [Container(directory / c["name"], c) for c in spec["spec"]["containers"]]

    def save(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        write(self.directory / "pod.json", json.dumps(self.spec))

    def key(self):
        return self.spec["metadata"]["namespace"], self.spec["metadata"]["name"]

    def alive(self):
        return any(c.alive() for c in self.containers)

    def stop(self, grace):
        deadline = time.monotonic() + grace
        while self.alive():
            for container in self.containers:
                container.signal(signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
            time.sleep(TICK)

    def status(self):
        containers = [c.status() for c in self.containers]
        ended = [c["state"]["terminated"] for c in containers if "terminated" in c["state"]]
        ready = all(c["ready"] for c in containers)
        phase = "Running"
        if len(ended) == len(containers):
            phase = "Succeeded" if all(e["exitCode"] == 0 for e in ended) else "Failed"
        elif any("waiting" in c["state"] for c in containers):
            phase = "Pending"
        conditions = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
        conditions += [{"type": kind, "status": "True"} for kind in ("Initialized", "PodScheduled")]
        return {"phase": phase, "conditions": conditions, "containerStatuses": containers,
                "startTime": stamp((self.directory / "pod.json").stat().st_ctime), "hostIP": "127.0.0.1", "podIP": "127.0.0.1"}

    def object(self):
        return json.dumps({**self.spec, "status": self.status()}).encode()


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def not_found(what):
    return Refused(grpc.StatusCode.NOT_FOUND, f"{what} is not here")


class Provider:
    def __init__(self, state):
        self.state, self.instance = state, uuid.uuid4().hex
        self.lock = threading.RLock()
        self.pods = {}  # by UID
        self.stopping = set()  # UIDs
        self.gone = {}  # the last that is known of pods that have stopped, by UID
        for path in state.glob("*/pod.json"):
            self.pods[path.parent.name] = Pod(path.parent, json.loads(path.read_text()))
        for pod in self.pods.values():  # killed within a CreatePod
            for container in pod.containers:
                container.start()

    def find(self, namespace, name):
        with self.lock:
            for pod in self.pods.values():
                if pod.key() == (namespace, name):
                    return pod
        raise not_found(f"pod {namespace}/{name}")

    def container(self, request):
        for container in self.find(request.namespace, request.pod).containers:
            if container.name == request.container:
                return container
        raise not_found(f"container {request.container} of pod {request.namespace}/{request.pod}")

    # The methods below are those of the service, by their names.

    def Handshake(self, request, context):
        node = json.loads(request.node_json)
        status = node.setdefault("status", {})
        status["capacity"] = status["allocatable"] = {"cpu": str(os.cpu_count()), "memory": "1Gi", "ephemeral-storage": "10Gi", "pods": "20"}
        return pb.HandshakeResponse(
            protocol_version=1, name="plugin-python", version="1", instance=self.instance, encoding=pb.ENCODING_JSON,
            node_json=json.dumps(node).encode(),
            abilities=[pb.ABILITY_REPORTS, pb.ABILITY_AUTHORITY, pb.ABILITY_LOGS, pb.ABILITY_EXEC],
            # What is not here a pod may not ask for: it is refused before it comes.
            declaration=pb.Declaration(lacks=[pb.FeatureNote(feature="EmptyDir", note="processes of this machine have no volumes")]))

    def Alive(self, request, context):
        return pb.AliveResponse(complete=True)

    def CreatePod(self, request, context):
        spec = json.loads(request.pod)
        uid, metadata = spec["metadata"]["uid"], spec["metadata"]
        if any(not c.get("command") for c in spec["spec"]["containers"]):
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "there are no images here: every container needs a command")
        if spec["spec"].get("restartPolicy") != "Never":
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "nothing is restarted here: spec.restartPolicy must be Never")
        with self.lock:
            for other, pod in self.pods.items():
                if other != uid and pod.key() == (metadata["namespace"], metadata["name"]):
                    raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"the pod with UID {other} has this name until it is gone")
            if uid not in self.pods:
                pod = Pod(self.state / uid, spec)
                pod.save()
                self.pods[uid] = pod
            for container in self.pods[uid].containers:
                container.start()
        return pb.PodDone()

    def UpdatePod(self, request, context):
        spec = json.loads(request.pod)
        with self.lock:
            pod = self.pods.get(spec["metadata"]["uid"])
            if pod is None:
                raise not_found("the pod")
            pod.spec = spec
            pod.save()
        return pb.PodDone()

    def DeletePod(self, request, context):
        metadata = json.loads(request.pod)["metadata"]
        with self.lock:
            pod = self.pods.get(metadata["uid"])
            if pod is None:
                raise not_found(f"pod {metadata['namespace']}/{metadata['name']}")
            if metadata["uid"] not in self.stopping:
                self.stopping.add(metadata["uid"])
                threading.Thread(target=self.stop, args=(metadata["uid"], pod, metadata.get("deletionGracePeriodSeconds", 30)), daemon=True).start()
        return pb.PodDone()

    def stop(self, uid, pod, grace):
        """Stops the pod and forgets it. Its last status is for those that watch."""
        pod.stop(grace)
        with self.lock:
            self.gone[uid] = pod.object()
            while len(self.gone) > 100:
                self.gone.pop(next(iter(self.gone)))
            self.pods.pop(uid)
            self.stopping.discard(uid)
        shutil.rmtree(pod.directory)

    def GetPod(self, request, context):
        return pb.PodAnswer(pod=self.find(request.namespace, request.name).object())

    def GetPodStatus(self, request, context):
        return pb.StatusAnswer(status=json.dumps(self.find(request.namespace, request.name).status()).encode())

    def GetPods(self, request, context):
        with self.lock:
            pods = list(self.pods.values())
        for pod in pods:
            yield pb.PodsAnswer(pods=[pod.object()])
        yield pb.PodsAnswer(complete=True)

    def WatchPods(self, request, context):
        told = dict.fromkeys(self.gone)
        yield pb.PodsReport()
        while context.is_active():
            with self.lock:
                pods = list(self.pods.items())
                gone = [self.gone[uid] for uid in self.gone if told.get(uid, "") is not None]
                told.update(dict.fromkeys(self.gone))
            for pod in gone:
                yield pb.PodsReport(pods=[pod])
            for uid, pod in pods:
                status = pod.status()
                if told.get(uid) != status:
                    told[uid] = status
                    yield pb.PodsReport(pods=[pod.object()])
            time.sleep(TICK)

    def GetContainerLogs(self, request, context):
        container = self.container(request)
        if request.previous:
            raise not_found("a log of an earlier run")
        yield pb.Chunk()
        with open(container.directory / "log", "rb") as log:
            if request.tail:
                log.seek(len(log.read()) - sum(len(l) for l in lines_of(container)[-request.tail:]))
            left = request.limit_bytes or None
            while context.is_active() and left != 0:
                alive = container.alive()
                data = log.read(32768 if left is None else min(left, 32768))
                if data:
                    left = None if left is None else left - len(data)
                    yield pb.Chunk(data=data)
                elif request.follow and alive:
                    time.sleep(TICK)
                else:
                    return

    def RunInContainer(self, requests, context):
        start = next(requests).start
        container = self.container(start)
        if not container.alive():
            raise not_found("a running container of that name")
        process = subprocess.Popen(
            list(start.command), env=container.environment(), cwd=container.directory, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        context.add_callback(process.kill)  # when the node goes away, and when all is over

        def feed():
            try:
                for request in requests:
                    if request.WhichOneof("input") == "stdin":
                        process.stdin.write(request.stdin)
                        process.stdin.flush()
                    elif request.stdin_closed:
                        break
                process.stdin.close()
            except (OSError, grpc.RpcError):
                pass  # the command reads no more, or the node has gone

        threading.Thread(target=feed, daemon=True).start()
        while data := process.stdout.read1(32768):
            yield pb.SessionOutput(stdout=data)
        code = process.wait()
        yield pb.SessionOutput(exit_code=code if code >= 0 else 128 - code)


def lines_of(container):
    return (container.directory / "log").read_bytes().splitlines(keepends=True)


def handler(provider):
    """Makes the methods of provider those of the service. No more than the messages need be generated."""
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
        make = kinds[method.name in client_streams, streams]
        handlers[method.name] = make(
            (stream_errors if streams else errors)(function),
            request_deserializer=getattr(pb, method.input_type.name).FromString,
            response_serializer=getattr(pb, method.output_type.name).SerializeToString)
    return grpc.method_handlers_generic_handler(SERVICE.full_name, handlers)


def fail(context, error):
    if error.code == grpc.StatusCode.NOT_FOUND:  # this provider knows all its pods, so they do not exist
        context.set_trailing_metadata((("virtualkubelet-error-bin", pb.ErrorDetail(not_found=True, complete=True).SerializeToString()),))
    context.abort(error.code, str(error))


def errors(function):
    def call(request, context):
        try:
            return function(request, context)
        except Refused as error:
            fail(context, error)
    return call


def stream_errors(function):
    def call(request, context):
        try:
            yield from function(request, context)
        except Refused as error:
            fail(context, error)
    return call


def make_way(path):
    """Removes the socket of a plugin that was killed. What else is there stays, such as the socket of a plugin that runs."""
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
    flags.add_argument("--state", required=True, type=Path, help="directory of the pods")
    args = flags.parse_args()
    make_way(args.socket)
    args.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Exec, logs that follow and the watch keep a thread each, which is made when it is needed. A node has 2,000 sessions at
    # most (--max-streams), and calls and signs of life must never wait for them.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2500), options=[
        ("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20)])
    server.add_generic_rpc_handlers((handler(Provider(args.state.absolute())),))
    os.umask(0o177)  # the socket is for this user only
    server.add_insecure_port(f"unix://{args.socket.absolute()}")
    os.umask(0o077)
    server.start()
    print(f"listening on {args.socket}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(1))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
