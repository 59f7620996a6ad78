# SPDX-License-Identifier: Apache-2.0
#
# Parts of hack/test-vk-test-set.sh: the image for the containers of the tests, what came of the tests, and the report.

import glob
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import xml.etree.ElementTree as xml

NAMES = {
    "process": "process on gVisor",
    "process-none": "process without isolation",
    "slurm": "slurm",
    "nomad": "nomad, driver exec",
    "interlink": "interlink with the Slurm plugin",
}

# Why a test fails, by template and provider; "" is each provider that the template has no other words for.
WITHOUT_MOUNTS = "Without isolation the node refuses volumes: a program of the machine has the files of the machine."
NOTES = {
    "030-simple-shared-volume": {
        "process-none": WITHOUT_MOUNTS,
        "nomad": "A mount of emptyDir is a link to a directory of the allocation with the driver exec, so a `readOnly` one can be written: the capabilities of the node say so.",
    },
    "040-config-volumes": {"process-none": WITHOUT_MOUNTS},
    "060-init-container": {
        "": "The test clones a repository of GitHub in an image with git; this machine reaches no GitHub, and its image has no git.",
        "process-none": WITHOUT_MOUNTS,
    },
    "065-multi-init-containers": {
        "process-none": WITHOUT_MOUNTS,
        "interlink": "The pod succeeds. The log of an init container is that of the job: for a container the plugin reads `run-NAME.out`, takes a file that is not there for an empty one (pkg/slurm/GetLogs.go, `ReadLogs`), and so never reads `init-NAME.out`.",
    },
    "070-rclone-bind": {
        "": "The test needs privileged containers and mount propagation, which the node refuses by name.",
        "process-none": WITHOUT_MOUNTS,
    },
    "090-probes": {"nomad": "The node refuses probes: a task of Nomad has them with a service only."},
    "095-default-entrypoint": {
        "": "The test needs the commands of three images, one with nginx.",
        "process": "The first two pods succeed. The third one needs nginx, which the image lacks.",
        "process-none": "There are no images, so two containers of the first pod have no command, and there is no nginx.",
        "slurm": "There are no images, so two containers of the first pod have no command, and there is no nginx.",
        "interlink": "The first two pods succeed. The third one needs nginx, which this machine lacks.",
        "nomad": "With the driver exec there are no images, so the node refuses a container without a command.",
    },
    "100-failing-containers": {
        "": "All five pods fail as the test wants, but the line that the test looks for is in the buffer of Python when the container is killed for its memory.",
        "slurm": "This Slurm keeps no limit of memory, as there are no cgroups, so the pod that exceeds it succeeds.",
        "interlink": "This Slurm keeps no limit of memory, as there are no cgroups, so the pod that exceeds it succeeds.",
    },
    "110-failed-jobs": {"": "The test asks for pods by the beginning of their names, which no API server answers. The pods of its Jobs fail as it wants."},
    "115-lifecycle-hooks": {"nomad": "The node refuses hooks: a task of Nomad has none."},
    "120-projected-volumes": {"process-none": WITHOUT_MOUNTS},
}


def image(tests, root, path):
    """Writes an archive of the files in root, as docker save writes them, with the name of every image of the templates."""
    names = set()
    for template in glob.glob(os.path.join(tests, "vktestset/templates/*.yaml")):
        with open(template) as f:
            for name in re.findall(r"^\s*(?:- )?image: *([^\s{]+)", f.read(), re.M):
                names.add(name if ":" in name.rsplit("/", 1)[-1] else name + ":latest")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as t:
        t.add(root, arcname=".")
    config = {
        "architecture": "amd64", "os": "linux",
        "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]},
    }
    manifest = [{"Config": "config.json", "RepoTags": sorted(names), "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as t:
        for name, data in (("layer.tar", layer.getvalue()), ("config.json", json.dumps(config).encode()), ("manifest.json", json.dumps(manifest).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))


def last_states(path):
    """Returns the last status of each pod that a watch has seen, by name."""
    states, decoder = {}, json.JSONDecoder()
    with open(path) as f:
        text = f.read()
    at = 0
    while True:
        at = next((i for i in range(at, len(text)) if not text[i].isspace()), None)
        if at is None:
            return states
        try:
            pod, at = decoder.raw_decode(text, at)
        except ValueError:  # the watch ended within an object
            return states
        for one in pod.get("items", [pod]):
            states[one["metadata"]["name"]] = one


def describe(pod):
    """Says how a pod is, in a line."""
    status = pod.get("status", {})
    parts = [" ".join(filter(None, [status.get("phase"), status.get("reason"), status.get("message")]))]
    for c in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        for state, s in c.get("state", {}).items():
            if state == "running" or s.get("exitCode") == 0 or s.get("reason") == "PodInitializing":
                continue
            code = "exit code %d" % s["exitCode"] if "exitCode" in s else ""
            parts.append("%s: %s" % (c["name"], " ".join(filter(None, [s.get("reason"), code, s.get("message")]))))
    return "; ".join(parts)


def results(junit, watch, tests=os.environ.get("VK_TEST_SET", "")):
    """Prints each template, whether it passed, and else what the test and its pods say."""
    states = last_states(watch)
    for case in xml.parse(junit).getroot().iter("testcase"):
        found = re.search(r"(\d{3}-[a-z-]+)\.yaml", case.get("name") or "")
        if not found:  # the run was interrupted
            continue
        template = found.group(1)
        failure = case.find("failure")
        if failure is None:
            print(template, "passes", "", sep="\t")
            continue
        with open(os.path.join(tests, "vktestset/templates", template + ".yaml")) as f:
            names = tuple(set(re.findall(r"name: ([a-z0-9-]+-)\{\{ uuid", f.read())))
        pods = [describe(p) for name, p in sorted(states.items()) if name.startswith(names)]
        why = re.sub(r"-?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", failure.get("message").splitlines()[0])
        print(template, "fails", " ".join((why + ": " + " / ".join(pods)).split())[:600], sep="\t")


def report(directory, version, images):
    """Prints the page."""
    found = {}
    for name in NAMES:
        path = os.path.join(directory, name + ".tsv")
        if os.path.exists(path):
            with open(path) as f:
                found[name] = {line.split("\t")[0]: line.rstrip("\n").split("\t")[1:] for line in f}
    print("# vk-test-set of interLink\n")
    print("`make vk-test-set` writes this page: the [tests of others](https://github.com/interlink-hq/vk-test-set) for virtual nodes, at %s, on a cluster" % version)
    print("of one machine. The tests are not changed; they wait twice as long as they say.")
    if images != "pull":
        print("Images of registries are not reached: on gVisor an image of the machine's busybox, bash and Python stands for each of them, and with Nomad's driver exec the")
        print("same files are the chroot of tasks. With the others containers are programs of the machine.")
        print("`050-limits` installs numpy from a registry, and its pod fails because that fails, not by its limit.")
    print("\n| Template | " + " | ".join(NAMES[n] for n in found) + " |\n|---" + "|---" * len(found) + "|")
    for template in sorted(set().union(*found.values())):
        print("| %s | %s |" % (template, " | ".join({"passes": "passes", "fails": "**fails**"}.get(found[n].get(template, ["not run"])[0], "not run") for n in found)))
    for name, rows in found.items():
        failed = {t: r[1] for t, r in sorted(rows.items()) if r[0] == "fails"}
        print("\n## %s\n\n%d pass, %d fail.\n" % (NAMES[name], len(rows) - len(failed), len(failed)))
        for template, why in failed.items():
            notes = NOTES.get(template, {})
            print(" ".join(("- %s: %s `%s`" % (template, notes.get(name, notes.get("", "**Nobody has examined this.**")), why.replace("`", "'"))).split()))


if __name__ == "__main__":
    {"image": image, "results": results, "report": report}[sys.argv[1]](*sys.argv[2:])
