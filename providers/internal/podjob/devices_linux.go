// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// usualCDI are the default directories of CDI specifications, by decreasing priority.
var usualCDI = []string{"/var/run/cdi", "/etc/cdi"}

// device is a device of a CDI specification, with the edits of its file and its own.
type device struct {
	name  string
	edits [2]specs.ContainerEdits
}

// nodes returns the paths of the device's own nodes on the machine.
func (d device) nodes() (paths []string) {
	for _, n := range d.edits[1].DeviceNodes {
		paths = append(paths, hostPath(n))
	}
	return paths
}

func hostPath(n *specs.DeviceNode) string {
	if n.HostPath != "" {
		return n.HostPath
	}
	return n.Path
}

// key identifies the device independently of its name.
func (d device) key() string {
	if nodes := d.nodes(); len(nodes) > 0 {
		return strings.ReplaceAll(strings.Join(nodes, ","), "/", "_")
	}
	return d.name
}

// devices are the devices of this machine that a pod may have.
type devices struct {
	all   []device
	given map[string][]device // by the names of containers
	locks []*os.File          // of the given devices, until this process ends
}

// claimDevices claims the devices of a kind that a pod requests. The resource has the name of the kind. An empty kind claims no device.
func claimDevices(pod *corev1.Pod, kind string, dirs []string) (_ *devices, err error) {
	d := &devices{given: map[string][]device{}}
	if kind == "" {
		return d, nil
	}
	asks := func(c *corev1.Container) int {
		q := c.Resources.Limits[corev1.ResourceName(kind)]
		return int(q.Value())
	}
	var lasting, passing []*corev1.Container // passing containers end before the next container begins
	most, sum := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			lasting, sum = append(lasting, c), sum+asks(c)
		} else {
			passing, most = append(passing, c), max(most, sum+asks(c))
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		lasting, sum = append(lasting, c), sum+asks(c)
	}
	most = max(most, sum)
	d.all, err = readDevices(dirs, kind)
	switch {
	case most == 0:
		return d, nil // errors of readDevices do not matter for a pod without devices
	case err != nil:
		return d, err
	case len(d.all) == 0:
		return d, fmt.Errorf("the pod asks for %s, and no CDI specification of this machine has such devices: make one in %s, for example with nvidia-ctk cdi generate", kind, strings.Join(dirs, " or "))
	}
	mine, err := d.lockFree(most)
	if err != nil {
		return d, err
	}
	if len(mine) < most {
		return d, fmt.Errorf("the pod asks for %d of %s, and %d of the %d devices of this machine are free", most, kind, len(mine), len(d.all))
	}
	at := 0
	for _, c := range lasting {
		d.given[c.Name] = mine[at : at+asks(c)]
		at += asks(c)
	}
	for _, c := range passing { // from the other end, because a sidecar may run at the same time
		d.given[c.Name] = mine[most-asks(c):]
	}
	return d, nil
}

// rootLocks is the directory with the locks of root's pods. Only root can make it.
var rootLocks = "/run/vk-devices"

// openLocks returns the directory with the locks of this user's pods. Another user with access to it could claim every device,
// or follow the pods to the same devices.
func openLocks() (dir string, err error) {
	uid := os.Geteuid()
	if dir = rootLocks; uid != 0 {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("vk-devices-%d", uid))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the directory with the claims of devices: %w", err)
	}
	info, err := os.Lstat(dir) // Lstat, because the directory must not be a symbolic link
	if err != nil {
		return "", fmt.Errorf("look at the directory with the claims of devices: %w", err)
	}
	if owner, is := info.Sys().(*syscall.Stat_t); !is || int(owner.Uid) != uid || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("claims of devices: %s is no directory that only user %d may use: remove it", dir, uid)
	}
	return dir, nil
}

// lockFree locks up to n free devices. The kernel releases the locks of a process that ends.
func (d *devices) lockFree(n int) (mine []device, err error) {
	dir, err := openLocks()
	if err != nil {
		return nil, err
	}
	for _, one := range d.all {
		if len(mine) == n {
			break
		}
		f, err := os.OpenFile(filepath.Join(dir, one.key()), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue
			}
			return nil, fmt.Errorf("claim device %s: %w", one.name, err)
		}
		d.locks, mine = append(d.locks, f), append(mine, one)
	}
	return mine, nil
}

// release releases the devices of the pod.
func (d *devices) release() {
	for _, f := range d.locks {
		_ = f.Close()
	}
}

// readDevices returns the devices of a kind, each device once.
func readDevices(dirs []string, kind string) (all []device, err error) {
	known := map[string]bool{"all": true} // by convention, this name stands for all devices
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
		more, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, path := range append(files, more...) {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			var spec specs.Spec
			if yaml.Unmarshal(data, &spec) == nil && spec.Kind != kind {
				continue
			}
			if err := yaml.UnmarshalStrict(data, &spec); err != nil {
				return nil, fmt.Errorf("CDI specification %s: %w", path, err)
			}
			for _, one := range spec.Devices {
				d := device{one.Name, [2]specs.ContainerEdits{spec.ContainerEdits, one.ContainerEdits}}
				if known[d.name] || known[d.key()] {
					continue
				}
				if err := d.refuseEdits(); err != nil {
					return nil, fmt.Errorf("CDI specification %s: %w", path, err)
				}
				known[d.name], known[d.key()] = true, true
				all = append(all, d)
			}
		}
	}
	return all, nil
}

// refuseEdits refuses edits that are not possible for containers of podjob.
func (d device) refuseEdits() error {
	for _, e := range d.edits {
		for _, h := range e.Hooks {
			if h.HookName != "createContainer" {
				return fmt.Errorf("device %s has a hook %s: only createContainer hooks are run", d.name, h.HookName)
			}
		}
		for _, m := range e.Mounts {
			if m.Type != "" && m.Type != "bind" {
				return fmt.Errorf("device %s has a mount of type %s at %s: only bind mounts are made", d.name, m.Type, m.ContainerPath)
			}
		}
		if len(e.NetDevices) > 0 || e.IntelRdt != nil {
			return fmt.Errorf("device %s has network devices or cache settings, which a job does not give to containers", d.name)
		}
	}
	return nil
}

// editEntry gives a container its devices, and hides the others. A container without an image already has the driver files of the machine.
func (d *devices) editEntry(e *enter.Entry, config *runtimeapi.ContainerConfig, dir string) error {
	var own, mounts []enter.Mount
	mine := d.given[config.GetMetadata().GetName()]
	for i, one := range mine {
		for j, edits := range one.edits {
			if i > 0 && j == 0 {
				continue // all devices of a kind share these nodes
			}
			for _, v := range edits.Env {
				name, _, _ := strings.Cut(v, "=")
				if !slices.ContainsFunc(config.GetEnvs(), func(k *runtimeapi.KeyValue) bool { return k.GetKey() == name }) {
					e.Env = append(slices.DeleteFunc(e.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") }), v)
				}
			}
			for _, n := range edits.DeviceNodes {
				own = append(own, enter.Mount{Source: hostPath(n), Target: n.Path})
			}
			for _, g := range edits.AdditionalGIDs {
				e.Groups = append(e.Groups, int(g))
			}
			if e.Image == "" {
				continue
			}
			for _, m := range edits.Mounts {
				mounts = append(mounts, enter.Mount{Source: m.HostPath, Target: m.ContainerPath, ReadOnly: slices.Contains(m.Options, "ro")})
			}
			for _, h := range edits.Hooks {
				e.Hooks = append(e.Hooks, enter.Hook{Path: h.Path, Args: h.Args, Env: h.Env})
			}
		}
	}
	for _, other := range d.all {
		for _, path := range other.nodes() {
			if !slices.ContainsFunc(own, func(m enter.Mount) bool { return m.Source == path }) {
				e.Without = append(e.Without, path)
			}
		}
	}
	e.Mounts = slices.Concat(own, mounts, e.Mounts)
	if len(e.Hooks) == 0 {
		return nil
	}
	e.Bundle = dir
	bundle, err := json.Marshal(map[string]any{"ociVersion": "1.2.0", "root": map[string]string{"path": e.Root}})
	return errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), bundle, 0o600))
}
