// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// checkHostPath checks that a path is lexically in one of the directories.
func checkHostPath(dirs []string, path string) error {
	switch {
	case slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".."):
		return fmt.Errorf("invalid HostPath `%s`: must not contain '..'", path)
	case !filepath.IsAbs(path):
		return fmt.Errorf("invalid HostPath `%s`: must be an absolute path", path)
	case !slices.ContainsFunc(dirs, func(prefix string) bool { return isInside(filepath.Clean(prefix), filepath.Clean(path)) }):
		return fmt.Errorf("%s is not below a directory of the machine that this node gives to pods", path)
	}
	return nil
}

// isInside reports whether path is dir or below it. Both are clean.
func isInside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// openHostPath opens the directory among dirs that really contains a path, and returns the relative path. If a path does not exist yet, its existing
// parent counts. Links of the machine, such as /var/run, are resolved first; then everything goes through os.Root, so it is an error if a container
// replaces a directory by a link in the meantime.
func openHostPath(dirs []string, path string) (*os.Root, string, error) {
	if err := checkHostPath(dirs, path); err != nil {
		return nil, "", err
	}
	exists, rest := filepath.Clean(path), "" // the existing part, and the rest of the path
	real, err := filepath.EvalSymlinks(exists)
	for errors.Is(err, fs.ErrNotExist) && exists != filepath.Dir(exists) {
		if _, dangling := os.Lstat(exists); dangling == nil {
			return nil, "", fmt.Errorf("%s: a link on its way leads nowhere", path)
		}
		exists, rest = filepath.Dir(exists), filepath.Join(filepath.Base(exists), rest)
		real, err = filepath.EvalSymlinks(exists)
	}
	if err != nil {
		return nil, "", err
	}
	real = filepath.Join(real, rest)
	for _, prefix := range dirs {
		// A container with the outer directory could put a link on the path to the inner directory.
		if slices.ContainsFunc(dirs, isWithin(prefix)) {
			continue
		}
		base, err := filepath.EvalSymlinks(prefix)
		if err != nil || !isInside(base, real) {
			continue
		}
		if info, err := os.Stat(base); err == nil && !info.IsDir() { // a socket, or a device
			base = filepath.Dir(base)
		}
		rel, err := filepath.Rel(base, real)
		if err != nil {
			return nil, "", err
		}
		root, err := os.OpenRoot(base)
		return root, rel, err
	}
	return nil, "", fmt.Errorf("%s leads out of the directories of the machine that this node gives to pods", path)
}

// isWithin reports whether another directory is above this one.
func isWithin(dir string) func(string) bool {
	return func(other string) bool {
		return filepath.Clean(dir) != filepath.Clean(other) && isInside(filepath.Clean(other), filepath.Clean(dir))
	}
}

// setupHostPath checks the type, and makes the path if the type allows it.
func (v *Volumes) setupHostPath(source *corev1.HostPathVolumeSource) error {
	root, rel, err := openHostPath(v.cfg.HostPaths, source.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	kind := corev1.HostPathUnset
	if source.Type != nil {
		kind = *source.Type
	}
	info, err := root.Stat(rel)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !absent:
		return err
	case absent && (kind == corev1.HostPathUnset || kind == corev1.HostPathDirectoryOrCreate): // a container runtime would make the directory, too
		return root.MkdirAll(rel, 0o755)
	case absent && kind == corev1.HostPathFileOrCreate:
		file, err := root.OpenFile(rel, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	case kind == corev1.HostPathUnset:
		return nil
	}
	wanted, text := wantedType(kind)
	switch {
	case text == "":
		return fmt.Errorf("%s is an invalid volume type", kind)
	case absent:
		return fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: path %q does not exist", source.Path, text, source.Path)
	case typeOf(info.Mode()) != wanted:
		return fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", source.Path, text, typeOf(info.Mode()))
	}
	return nil
}

// wantedType returns the required type of a path, and its name.
func wantedType(kind corev1.HostPathType) (corev1.HostPathType, string) {
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		return corev1.HostPathDirectory, "directory"
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		return corev1.HostPathFile, "file"
	case corev1.HostPathSocket:
		return kind, "socket file"
	case corev1.HostPathCharDev:
		return kind, "character device"
	case corev1.HostPathBlockDev:
		return kind, "block device"
	}
	return "", ""
}

func typeOf(mode fs.FileMode) corev1.HostPathType {
	switch {
	case mode.IsDir():
		return corev1.HostPathDirectory
	case mode&fs.ModeSocket != 0:
		return corev1.HostPathSocket
	case mode&fs.ModeCharDevice != 0:
		return corev1.HostPathCharDev
	case mode&fs.ModeDevice != 0:
		return corev1.HostPathBlockDev
	default:
		return corev1.HostPathFile
	}
}
