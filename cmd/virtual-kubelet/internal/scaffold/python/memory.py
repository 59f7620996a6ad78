# SPDX-License-Identifier: Apache-2.0
"""A service in this process: its containers are threads. Try and test a new plugin on it; delete it when the plugin uses your service."""
import queue
import threading
import time

from failures import Invalid, NotFound


def demo(process):
    """Is the default behaviour of containers: they print their command without running it, and wait for their end."""
    process.stdout(f"this is skeleton in memory, which would run: {' '.join(process.command)}\n".encode())
    if not process.main:
        return 0
    return 137 if process.signals.wait(None) == "killed" else 0


work = demo


class Signals:
    """The signals to a process: a request to stop, or a kill."""

    def __init__(self):
        self.changed, self.asked, self.killed = threading.Condition(), False, False

    def ask(self):
        with self.changed:
            self.asked = True
            self.changed.notify_all()

    def kill(self):
        with self.changed:
            self.killed = True
            self.changed.notify_all()

    def wait(self, seconds, deaf=False):
        """Waits for a time, or for ever. Returns the signal: "killed", "asked", or None."""
        with self.changed:
            self.changed.wait_for(lambda: self.killed or self.asked and not deaf, seconds)
            return "killed" if self.killed else "asked" if self.asked and not deaf else None


class Process:
    """A container, or a command in one."""

    def __init__(self, container, command, main, stdout, stderr):
        self.command, self.env, self.main = command, container.spec["env"], main
        self.stdout, self.stderr, self.signals = stdout, stderr, Signals()
        # The input from the caller of a command: ("stdin", bytes), ("size", (rows, columns)), ("closed", None). None: no caller.
        self.events = None
        self.ports = container.group.ports

    def serve(self, port, answer):
        """Answers data at a port: answer returns bytes for bytes."""
        self.ports[port] = answer


class Session:
    """A command in a container, as the plugin sees it. Nothing runs before wait."""

    def __init__(self, process, ended):
        self.process, self.ended = process, ended

    def stdin(self, data):
        self.process.events.put(("stdin", data))

    def resize(self, rows, columns):
        self.process.events.put(("size", (rows, columns)))

    def close_stdin(self):
        self.process.events.put(("closed", None))

    def kill(self):
        self.process.signals.kill()

    def wait(self):
        """Waits for the end. Returns the exit code, or None if it is unknown."""
        try:
            code = work(self.process)
        finally:
            self.ended()
        return None if self.process.signals.killed else code


class Log:
    """The log of one run of a container: lines with their times, in nanoseconds."""

    def __init__(self):
        self.changed, self.lines, self.part, self.over = threading.Condition(), [], b"", False

    def write(self, data):
        with self.changed:
            *whole, self.part = (self.part + data).split(b"\n")
            self.lines += [(time.time_ns(), line + b"\n") for line in whole]
            self.changed.notify_all()

    def end(self):
        with self.changed:
            if self.part:
                self.lines.append((time.time_ns(), self.part + b"\n"))
            self.part, self.over = b"", True
            self.changed.notify_all()

    def read(self, since=0, tail=0, follow=False, wanted=lambda: True):
        """Yields lines. A followed log ends with the run, or when the caller has left: notify changed then."""
        seen = 0
        while wanted():
            with self.changed:
                lines, over = self.lines[seen:], self.over
            first, seen = seen == 0, seen + len(lines)
            lines = [line for line in lines if line[0] >= since]
            yield from lines[-tail:] if first and tail else lines
            if over or not follow:
                return
            with self.changed:
                self.changed.wait_for(lambda: len(self.lines) > seen or self.over or not wanted())


class Container:
    """A container of a group. Its fields change under the lock of the service."""

    def __init__(self, group, spec):
        self.group, self.spec, self.state, self.restarts = group, spec, "creating", 0
        self.run, self.last, self.log, self.last_log, self.signals = None, None, None, None, None

    def live(self):
        delay = 0.01
        while self.once():
            if self.group.signals.wait(delay):
                with self.group.lock:
                    self.state = "stopped"
                return
            delay = min(2 * delay, 10)

    def once(self):
        """Runs the container once. Reports whether it runs again."""
        group, log = self.group, Log()
        process = Process(self, self.spec["command"], True, log.write, log.write)
        with group.lock:
            if self.run:
                self.last, self.restarts = self.run, self.restarts + 1
            group.service.runs += 1
            self.run = {"id": f"{group.service.runs}", "started": time.time(), "finished": None, "code": None}
            self.last_log, self.log, self.state, self.signals = self.log, log, "running", process.signals
            group.hear(process.signals)
        code = work(process)
        if process.signals.killed:
            code = 137
        with group.lock:
            group.hearing.discard(process.signals)
            again = not (group.signals.asked or group.signals.killed) and (
                group.spec["restart"] == "always" or group.spec["restart"] == "on-failure" and code != 0)
            self.run = {**self.run, "finished": time.time(), "code": code}
            self.state = "waiting" if again else "stopped"
        log.end()
        return again


class Group:
    """A group of containers."""

    def __init__(self, service, spec):
        self.service, self.lock, self.spec, self.created = service, service.lock, spec, time.time()
        self.signals, self.hearing, self.ports = Signals(), set(), {}
        self.stopping, self.deadline, self.killer = False, None, None
        self.containers = [Container(self, c) for c in spec["containers"]]

    def hear(self, signals):
        """Passes on the signals to the group."""
        self.hearing.add(signals)
        if self.signals.killed:
            signals.kill()
        elif self.signals.asked:
            signals.ask()

    def kill(self):
        with self.lock:
            for signals in [self.signals, *self.hearing]:
                signals.kill()

    def ended(self):
        return all(c.state == "stopped" for c in self.containers)

    def show(self):
        """The group as the service shows it."""
        return {"spec": self.spec, "created": self.created, "address": "127.0.0.1", "stopping": self.stopping, "containers": [
            {"name": c.spec["name"], "image": c.spec["image"], "state": c.state, "restarts": c.restarts, "run": c.run, "last": c.last}
            for c in self.containers]}


class Memory:
    """The service, with the methods required by the plugin."""

    def __init__(self):
        self.lock, self.groups, self.runs = threading.RLock(), {}, 0
        self.fault, self.lose_answer = "", False  # for the contract

    def request(self):
        if self.fault:
            raise OSError(self.fault)

    def find(self, id):
        self.request()
        if id not in self.groups:
            raise NotFound(f"group {id} does not exist")
        return self.groups[id]

    def container(self, id, name):
        for c in self.find(id).containers:
            if c.spec["name"] == name:
                return c
        raise NotFound(f"group {id} has no container {name}")

    def create(self, spec):
        """Starts a group. The call is repeated after a lost answer, so an existing group stays as it is."""
        with self.lock:
            self.request()
            if spec["id"] in self.groups:
                return
            group = self.groups[spec["id"]] = Group(self, spec)
            for c in group.containers:
                threading.Thread(target=c.live, daemon=True).start()
            if self.lose_answer:
                self.lose_answer = False
                raise OSError("the connection was closed before the answer")

    def update(self, id, pod):
        """Keeps the pod of a group, as a service with tags does."""
        with self.lock:
            group = self.find(id)
            group.spec = {**group.spec, "pod": pod}

    def list(self, node):
        """Returns all groups of a node, in every state. The list is complete, or an error."""
        with self.lock:
            self.request()
            return [group.show() for group in self.groups.values() if group.spec["node"] == node]

    def stop(self, id, grace):
        """Asks a group to stop, and kills it after the grace period. Of two periods the first end counts."""
        with self.lock:
            group, deadline = self.find(id), time.monotonic() + grace
            if grace <= 0:
                group.kill()
            for signals in [group.signals, *group.hearing]:
                signals.ask()
            if group.deadline is None or deadline < group.deadline:
                if group.killer:
                    group.killer.cancel()
                group.deadline, group.stopping = deadline, True
                group.killer = threading.Timer(grace, group.kill)
                group.killer.daemon = True
                group.killer.start()

    def remove(self, id):
        """Removes an ended group."""
        with self.lock:
            group = self.find(id)
            if not group.ended():
                raise Invalid(f"group {id} has not ended")
            self.drop(group)

    def drop(self, group):
        if group.killer:
            group.killer.cancel()
        self.groups.pop(group.spec["id"], None)

    def log(self, id, name, previous):
        with self.lock:
            c = self.container(id, name)
            log = c.last_log if previous and c.state != "waiting" else c.log
        if log is None:
            raise Invalid(f"container {name} has no such run")
        return log

    def execute(self, id, name, command, stdout, stderr):
        """Makes a Session of a command in a running container. stdout and stderr are called with its output, until it ends."""
        with self.lock:
            c = self.container(id, name)
            if c.state != "running":
                raise Invalid(f"container {name} does not run")
            process = Process(c, command, False, stdout, stderr)
            process.events = queue.Queue()
            c.group.hear(process.signals)
            return Session(process, lambda: c.group.hearing.discard(process.signals))

    def dial(self, id, port):
        """Returns the function that answers at a port."""
        with self.lock:
            answer = self.find(id).ports.get(port)
        if answer is None:
            raise OSError("connection refused")
        return answer
