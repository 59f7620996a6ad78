// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

func config(t *testing.T, spec shim.Spec) (c specs.Spec) {
	t.Helper()
	if spec.Cgroup.V2 == "" && spec.Cgroup.V1 == nil {
		spec.Cgroup.V1 = map[string]string{"memory": "/sys/fs/cgroup/memory/of/vk-1", "cpu": "/sys/fs/cgroup/cpu/of/vk-1"}
	}
	data, err := Config(&spec, "/root", []string{"CAP_KILL"})
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMountsAreInTheOrderOfTheirDepth(t *testing.T) {
	c := config(t, shim.Spec{Mounts: []shim.Mount{
		{Source: "/1", Target: "/a/b/c"}, {Source: "/2", Target: "/a"}, {Source: "/3", Target: "/dev/shm"}, {Source: "/4", Target: "/a/b/"}, {Source: "/5", Target: "/"},
	}})
	last, shm := -1, 0
	for _, m := range c.Mounts {
		if d := pathDepth(m.Destination); d < last {
			t.Errorf("%s is after one that is deeper: %v", m.Destination, c.Mounts)
		} else {
			last = d
		}
		if m.Destination == "/dev/shm" {
			shm++
		}
	}
	if shm != 1 {
		t.Errorf("/dev/shm is mounted %d times, want the volume only", shm)
	}
}

func TestWhereNothingMayBeMounted(t *testing.T) {
	for target, forPrivileged := range map[string]bool{
		"/proc": false, "/proc/sys": false, "/x/../proc/1": false, "/dev": true, "/dev/": true, "/dev/null": true, "/dev/../dev/pts": true,
	} {
		for _, privileged := range []bool{false, true} {
			spec := shim.Spec{Privileged: privileged, Mounts: []shim.Mount{{Source: "/x", Target: target}}, Cgroup: shim.Cgroup{V2: "/sys/fs/cgroup/vk-1"}}
			_, err := Config(&spec, "/root", nil)
			if want := privileged && forPrivileged; (err == nil) != want {
				t.Errorf("%s, privileged %v: got %v", target, privileged, err)
			}
		}
	}
	for _, target := range []string{"/dev/shm", "/dev/termination-log", "/device", "/process"} {
		if err := checkTarget(target, false); err != nil {
			t.Error(err)
		}
	}
}

func TestNamespacesAreTheContainersOwnUnlessThePodSaysSo(t *testing.T) {
	kinds := func(spec shim.Spec) string {
		var all []string
		for _, n := range config(t, spec).Linux.Namespaces {
			all = append(all, string(n.Type)+n.Path)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	for _, tt := range []struct {
		spec shim.Spec
		want string
	}{
		{shim.Spec{}, "ipc mount pid uts"},
		{shim.Spec{HostPID: true, HostIPC: true}, "mount uts"},
		{shim.Spec{PIDOf: 7, NetNS: "/n"}, "ipc mount network/n pid/proc/7/ns/pid uts"},
		{shim.Spec{Cgroup: shim.Cgroup{V2: "/sys/fs/cgroup/a/vk-1"}}, "cgroup ipc mount pid uts"},
	} {
		if got := kinds(tt.spec); got != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.spec, got, tt.want)
		}
	}
}

func TestDevicesAreDeniedUnlessThePodHasThem(t *testing.T) {
	rules := config(t, shim.Spec{Mounts: []shim.Mount{{Source: "/dev/full", Target: "/dev/mine", Device: true}}}).Linux
	if len(rules.Devices) != 1 || rules.Devices[0].Path != "/dev/mine" || rules.Devices[0].Major != 1 || rules.Devices[0].Minor != 7 {
		t.Errorf("devices: got %+v", rules.Devices)
	}
	if r := rules.Resources.Devices; len(r) != 2 || r[0].Allow || !r[1].Allow || *r[1].Minor != 7 {
		t.Errorf("rules: got %+v", r)
	}
	if _, err := Config(&shim.Spec{Mounts: []shim.Mount{{Source: "/etc/passwd", Target: "/dev/x", Device: true}}}, "/root", nil); err == nil {
		t.Error("a file that is no device: got no error")
	}
}

// TestTheGroupIsTheDaemons checks the control group of a container. With version 1 the daemon's group may differ
// in each hierarchy.
func TestTheGroupIsTheDaemons(t *testing.T) {
	if got := config(t, shim.Spec{}).Linux.CgroupsPath; got != "/of/vk-1" {
		t.Errorf("version 1: got %s", got)
	}
	if got := config(t, shim.Spec{Cgroup: shim.Cgroup{V2: "/sys/fs/cgroup/a/vk-1"}}).Linux.CgroupsPath; got != "/a/vk-1" {
		t.Errorf("version 2: got %s", got)
	}
	if _, err := Config(&shim.Spec{}, "/root", nil); err == nil {
		t.Error("without a group: got no error")
	}
}

func TestRightsOfAContainer(t *testing.T) {
	c := config(t, shim.Spec{Seccomp: true, NoNewPrivs: true, Masked: []string{"/proc/kcore"}, ReadOnlyPaths: []string{"/proc/sys"}, ReadOnly: true})
	if c.Linux.Seccomp == nil || c.Linux.Seccomp.DefaultAction != specs.ActErrno {
		t.Errorf("seccomp: got %+v", c.Linux.Seccomp)
	}
	if p := c.Process.Capabilities; len(p.Bounding) != 1 || len(p.Inheritable)+len(p.Ambient) != 0 {
		t.Errorf("capabilities: got %+v", p)
	}
	if !c.Process.NoNewPrivileges || !c.Root.Readonly || len(c.Linux.MaskedPaths) != 1 || len(c.Linux.ReadonlyPaths) != 1 {
		t.Errorf("got %+v", c)
	}
	if config(t, shim.Spec{}).Linux.Seccomp != nil {
		t.Error("who does not ask has a filter")
	}
}
