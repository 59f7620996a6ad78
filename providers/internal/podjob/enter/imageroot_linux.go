// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay makes the root of a container of an image: the image's files, the container's writes over them, and
// the machine's devices and name servers.
func (r *root) overlay(e Entry) error {
	upper, work := join(e.Upper, "upper"), join(e.Upper, "work")
	for _, dir := range []string{e.Image, upper, work} {
		if strings.ContainsAny(dir, ",:\\") {
			return fmt.Errorf("%s: TMPDIR of the job must have no comma, colon or backslash", dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // it is a root for others
			return err
		}
	}
	options := "lowerdir=" + e.Image + ",upperdir=" + upper + ",workdir=" + work
	if os.Getuid() != 0 {
		options += ",userxattr"
	}
	// No file of an image can change the user on the machine, or act as a device of the machine.
	if err := unix.Mount("overlay", r.dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("lay the container's files over those of its image, both in TMPDIR of the job: %w", err)
	}
	r.own = true
	if _, err := r.place("/proc", true); err != nil {
		return err
	}
	for _, m := range []Mount{
		{Source: "/dev", Target: "/dev"}, {Source: "/sys", Target: "/sys", ReadOnly: true},
		{Source: "/etc/resolv.conf", Target: "/etc/resolv.conf", ReadOnly: true}, {Source: "/etc/hosts", Target: "/etc/hosts", ReadOnly: true},
	} {
		if err := r.mount(m); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("mount at %s: %w", m.Target, err)
		}
	}
	delete(r.made, "/dev") // /dev belongs to the machine
	shm := join(r.dir, "dev", "shm")
	if _, err := os.Stat(shm); err != nil {
		return nil //nolint:nilerr // the machine has none
	}
	return unix.Mount("tmpfs", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
}
