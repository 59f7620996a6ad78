// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// podDevices returns the devices of the pod, and the device rules of the cgroup. A container can use only these
// devices and the default devices of a runtime, whatever device nodes it creates.
func podDevices(spec *shim.Spec) (made []specs.LinuxDevice, rules []specs.LinuxDeviceCgroup, err error) {
	if spec.Privileged {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Access: "rwm"})
	} else {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: false, Access: "rwm"})
	}
	for _, m := range spec.Mounts {
		if !m.Device {
			continue
		}
		// A directory means all devices in it.
		err := filepath.WalkDir(m.Source, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			rel, err := filepath.Rel(m.Source, path)
			if err != nil {
				return err
			}
			d, err := deviceAt(path, filepath.Join(m.Target, rel))
			if err != nil {
				return err
			}
			made = append(made, d)
			rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: d.Type, Major: &d.Major, Minor: &d.Minor, Access: "rwm"})
			return nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("device %s: %w", m.Source, err)
		}
	}
	return made, rules, nil
}

// deviceAt returns the device at path, with target as its path in the container.
func deviceAt(path, target string) (specs.LinuxDevice, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return specs.LinuxDevice{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	mode := os.FileMode(stat.Mode & 0o777)
	d := specs.LinuxDevice{
		Path: target, Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev)), FileMode: &mode, UID: &stat.Uid, GID: &stat.Gid,
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		d.Type = "c"
	case unix.S_IFBLK:
		d.Type = "b"
	default:
		return d, fmt.Errorf("%s is no device", path)
	}
	return d, nil
}
