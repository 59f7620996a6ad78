#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin, with containers for the programs of the contract, and with faults of its service, one a line on standard input."""
import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import memory  # noqa: E402
import plugin  # noqa: E402

FOREVER = 2**63 - 1  # of program.Program, in nanoseconds


def run_program(process):
    """Runs a program.Program of the contract, given in JSON."""

    def say(text, to=process.stdout):
        to(f"{text}\n".encode())

    try:
        p = json.loads(process.command[0])
    except ValueError as error:
        say(f"{process.command[0]}: {error}", process.stderr)
        return 126

    if p.get("need"):
        say("no file " + p["need"][0], process.stderr)
        return 1
    for line in (process.env if p.get("env") else []) + p.get("print", []):
        say(line)
    for line in p.get("stderr", []):
        say(line, process.stderr)
    for path in p.get("write", []):
        say("cannot write " + path)
    for path in p.get("show", []):
        say("no file " + path)
    if p.get("listen"):
        process.serve(p["listen"], lambda data: data)
        say("listening")
    if process.events and (p.get("size") or p.get("echo")):
        while True:
            kind, value = process.events.get()
            if kind == "closed":
                break
            if kind == "size" and p.get("size"):
                say(f"size {value[0]} {value[1]}")
            elif kind == "stdin" and p.get("echo"):
                process.stdout(value)
    return stay(process, p, say)


def stay(process, p, say):
    left, tick, n = p.get("stay", 0), p.get("tick", 0), 1
    end = None if left == FOREVER else time.monotonic() + left / 1e9
    while left:
        seconds = None if end is None else max(0, end - time.monotonic())
        if tick:
            seconds = tick / 1e9 if seconds is None else min(seconds, tick / 1e9)
        heard = process.signals.wait(seconds, p.get("deaf", False))
        if heard:
            return 0 if heard == "asked" else 137
        if end is not None and time.monotonic() >= end:
            break
        say(f"tick {n}")
        n += 1
    return p.get("exit", 0)


def control(service):
    """Obeys the harness: {"do": "kill", "uid": …, "container": …}. Answers with one line each."""
    for line in sys.stdin:
        ask, said = json.loads(line), {}
        with service.lock:
            group = service.groups.get(ask.get("uid"))
            if ask["do"] == "instances":
                said["n"] = 0 if group is None or group.ended() else 1
            elif ask["do"] == "fault":
                service.fault = ask["text"]
            elif ask["do"] == "lose-answer":
                service.lose_answer = True
            elif group is None:
                said["error"] = "there is no such group"
            elif ask["do"] == "kill":
                for c in group.containers:
                    if c.spec["name"] == ask["container"]:
                        c.signals.kill()
            elif ask["do"] == "lose":
                service.drop(group)
                group.kill()
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    memory.work = run_program
    memory_service = memory.Memory()
    plugin.open_service = lambda args: memory_service
    threading.Thread(target=control, args=(memory_service,), daemon=True).start()
    plugin.main()
