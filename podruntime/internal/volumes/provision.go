// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// provisioned matches the names of volumes that MakeVolume makes. Other files in the directory are never touched.
var provisioned = regexp.MustCompile(`^pvc-[0-9a-zA-Z][0-9a-zA-Z-]{0,127}$`)

// removing is the suffix of a directory whose volume is being removed.
const removing = ".removing"

// Provisions reports whether there is a directory to make volumes in.
func (v *Volumes) Provisions() bool { return v.cfg.Provision != "" }

// openProvision opens the directory for volumes, to make or remove a volume of that name.
func (v *Volumes) openProvision(name string) (*os.Root, error) {
	switch {
	case !v.Provisions():
		return nil, errdefs.InvalidInput("no directory of the machine is for PersistentVolumes that are made by the node")
	case !provisioned.MatchString(name):
		return nil, errdefs.InvalidInputf("%q cannot be a PersistentVolume that is made by the node", name)
	}
	return os.OpenRoot(v.cfg.Provision)
}

// MakeVolume makes an empty directory for a PersistentVolume, with write access for everybody, and returns its
// path. An existing directory stays as it is.
func (v *Volumes) MakeVolume(name string) (string, error) {
	root, err := v.openProvision(name)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is no directory", filepath.Join(v.cfg.Provision, name))
	case info.Mode().Perm() == 0o700: // the directory is new, or a process crashed here
		err = root.Chmod(name, 0o777)
	}
	return filepath.Join(v.cfg.Provision, name), err
}

// RemoveVolume removes the directory of a PersistentVolume with its content, if it exists. It first renames the directory, so that an interrupted
// removal is found and continued, and its rest is not mistaken for the volume. It follows no link and enters no mount.
func (v *Volumes) RemoveVolume(name string) error {
	root, err := v.openProvision(name)
	if err != nil {
		return err
	}
	defer root.Close()
	aside := name + removing
	if err := root.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := root.Rename(name, filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Join(v.cfg.Provision, aside)
	entries, err := os.ReadDir(dir) // next to the volume: an earlier removal moved directories there because they were too deep
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := removeTree(dir, e.Name()); err != nil {
			return err
		}
	}
	return root.Remove(aside)
}
