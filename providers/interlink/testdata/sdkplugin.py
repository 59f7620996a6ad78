#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin for the tests, written with interLink's SDK for Python: containers are processes. It answers for pods that it does not know as the
guide for plugins does, with 404.
Usage: sdkplugin.py SOCKET FILE   FILE has the UIDs of the pods that are left"""
import datetime
import subprocess
import sys
from typing import List

import interlink
import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

socket, left = sys.argv[1], sys.argv[2]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Processes(interlink.Provider):
    def __init__(self):
        self.pods = {}
        self.tell()

    def tell(self):
        with open(left, "w") as f:
            f.write("\n".join(self.pods))

    def of(self, uid):
        if uid not in self.pods:
            raise HTTPException(status_code=404, detail="No containers found for UUID")
        return self.pods[uid]

    def create(self, pod: interlink.Pod) -> interlink.CreateStruct:
        uid = pod.pod.metadata.uid
        made = {}
        for c in pod.pod.spec.containers:
            out = open(left + "." + uid + "." + c.name, "wb+")
            argv = (c.command or []) + (c.args or [])
            made[c.name] = {"process": subprocess.Popen(argv, stdout=out, stderr=out), "out": out, "began": now()}
        self.pods[uid] = made
        self.tell()
        return interlink.CreateStruct(PodUID=uid, PodJID="job-" + uid)

    def delete(self, pod: interlink.PodRequest) -> None:
        uid = pod.metadata.uid
        for c in self.of(uid).values():
            c["process"].kill()
            c["process"].wait()
            c["out"].close()
        del self.pods[uid]
        self.tell()

    def status(self, pod: interlink.PodRequest) -> interlink.PodStatus:
        uid = pod.metadata.uid
        containers = []
        for name, c in self.of(uid).items():
            code = c["process"].poll()
            if code is None:
                state = {"running": {"startedAt": c["began"]}}
            else:
                c.setdefault("ended", now())
                state = {"terminated": {"startedAt": c["began"], "finishedAt": c["ended"], "exitCode": code, "reason": "Completed"}}
            containers.append({"name": name, "ready": code is None, "state": state})
        return interlink.PodStatus(name=pod.metadata.name, UID=uid, namespace=pod.metadata.namespace, containers=containers)

    def logs(self, req: interlink.LogRequest) -> bytes:
        c = self.of(req.pod_uid)[req.container_name]
        with open(c["out"].name, "rb") as f:
            return f.read()


provider = Processes()
app = FastAPI()


@app.post("/create")
async def create(pod: interlink.Pod) -> interlink.CreateStruct:
    return provider.create_pod(pod)


@app.post("/delete")
async def delete(pod: interlink.PodRequest) -> str:
    return provider.delete_pod(pod)


@app.get("/status")
async def status(pods: List[interlink.PodRequest]) -> List[interlink.PodStatus]:
    if not pods:  # a ping: the SDK fails for it, and a virtual node takes that for a plugin that is not well
        return []
    return provider.get_status(pods)


@app.get("/getLogs", response_class=PlainTextResponse)
async def logs(req: interlink.LogRequest) -> bytes:
    return provider.get_logs(req)


uvicorn.run(app, uds=socket)
