// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// onQEMU is this project's agent with provider kip, which starts a machine of QEMU for each pod. The machines are not
// counted.
type onQEMU struct {
	*ours
	image   string // folder with kernel and archive
	standby bool   // one machine waits for a pod
}

func newOnQEMU(o *ours, cfg config, name string) (agent, error) {
	o.as = name
	image, err := filepath.Abs(filepath.Join(cfg.bin, "cell"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(image, "initrd")); err != nil {
		return nil, fmt.Errorf("%s needs the image of machines, which make cell-image builds: %w", name, err)
	}
	if _, err := findProgram("qemu-system-x86_64"); err != nil {
		return nil, fmt.Errorf("%s needs QEMU, as of Debian's package qemu-system-x86: %w", name, err)
	}
	return onQEMU{o, image, name == "kip-standby"}, nil
}

func (a onQEMU) describeSettings() string {
	accel := "without KVM"
	if _, err := os.Stat("/dev/kvm"); err == nil {
		accel = "with KVM if it works"
	}
	if a.standby {
		return "the same, and one machine waits for a pod"
	}
	return "virtual-kubelet --provider=kip, QEMU " + accel + ", one CPU and 256 MiB for a pod, programs of the machine instead of images; all else by default"
}

// qemuProvider is the configuration of provider kip.
const qemuProvider = `apiVersion: kip.virtual-kubelet.io/v1alpha1
kind: KipProviderConfiguration
clusterName: bench
directory: %s
image: %s
containers: programs
qemu: {}
types: [{name: small, cpu: 1, memory: 256Mi}]
`

// standbyMachine makes one machine wait for a pod.
const standbyMachine = "standby: [{type: small, count: 1}]\n"

func (a onQEMU) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	dir := filepath.Join(m.base, "kip", prefix)
	file, text := filepath.Join(dir, "provider.yaml"), fmt.Sprintf(qemuProvider, dir, a.image)
	if a.standby {
		text += standbyMachine
	}
	if err := writeConfig(file, text); err != nil {
		return nil, err
	}
	node, err := a.startWith(ctx, m, s, prefix, []string{"--provider=kip", "--provider-config=" + file})
	if err != nil {
		killMachines(dir)
		return nil, err
	}
	node.machines = &qemuMachines{dir: dir, standby: a.standby}
	node.stopped = func() { killMachines(dir) }
	node.program = []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done", "pod"}
	return node, nil
}

// qemuMachines are the machines of a node, as its files tell.
type qemuMachines struct {
	dir     string
	standby bool
}

// qemuRecord is a part of the record of a machine.
type qemuRecord struct {
	Machine struct{ Tags map[string]string }
}

// standbySpeaks is the time from the certificate of a machine on standby until the node has heard its agent, at most.
const standbySpeaks = 3 * time.Second

// awaitTurn waits until the machine of the last pod is gone, and a machine on standby waits for the next pod.
func (q *qemuMachines) awaitTurn(ctx context.Context, p *process) error {
	for !q.isTurn() {
		select {
		case <-p.done:
			return p.endReason()
		default:
		}
		if err := waitFor(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the machines of %s: %w: %s", p.name, err, p.said)
		}
	}
	if q.standby {
		return waitFor(ctx, standbySpeaks)
	}
	return nil
}

// isTurn reports whether no machine is left, except a machine on standby with its certificate.
func (q *qemuMachines) isTurn() bool {
	files, _ := filepath.Glob(filepath.Join(q.dir, "machines", "*", "machine.json")) // the pattern is valid
	if !q.standby {
		return len(files) == 0
	}
	if len(files) != 1 {
		return false
	}
	var r qemuRecord
	text, err := os.ReadFile(files[0])
	return err == nil && json.Unmarshal(text, &r) == nil && r.Machine.Tags["vk-standby"] == "true" && r.Machine.Tags["vk-signed"] != ""
}

// killMachines kills the remaining machines of a node, such as a machine on standby.
func killMachines(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "machines", "*", "pid")) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the machine has just gone
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || pid <= 1 {
			continue
		}
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !strings.Contains(string(args), filepath.Dir(file)) {
			continue // the number is another program's by now
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			printProgress("a machine was not ended: %v", err)
		}
	}
}
