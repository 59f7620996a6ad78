// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mountRoot mounts the root of the container, an overlay over the image. The runtime does the other mounts. Only
// privileged containers can use device nodes of an image.
func mountRoot(spec *Spec) error {
	flags := uintptr(unix.MS_NODEV)
	if spec.Privileged {
		flags = 0
	}
	options := "lowerdir=" + spec.Image + ",upperdir=upper,workdir=work"
	if err := unix.Mount("overlay", rootDir, "overlay", flags, options); err != nil {
		return fmt.Errorf("mount the root of the container over its image: %w", err)
	}
	return nil
}
