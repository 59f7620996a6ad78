// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pin resolves the path of a volume for a container, and protects it from changes.
//
// The race: a running container can write the volume. With a path in the volume, it could replace a directory on that path by a link to anything on
// the machine, after the check and before the runtime mounts. So this process itself mounts the opened file, by its descriptor, at a private path,
// and passes that path to the runtime. If this process cannot mount, the runtime opens the file once: see Config.SubPaths. Without that support in
// the runtime, subPaths of such volumes are refused.
type pin struct {
	v         *Volumes
	uid       types.UID
	volume    string
	container string
	index     int
	sub       string            // the path inside the volume; "" means the whole volume
	mount     *runtimeapi.Mount // for the runtime; pin sets its HostPath
	keep      bool              // only this process can write to the volume
	base      string            // the directory in which the path of the mount begins
	way       []string          // the path from base to the volume
}

// pinVolume resolves the path of a volume in dir, a directory that only this process can write to.
func (p *pin) pinVolume(dir string) error {
	p.base = dir
	if p.sub == "" {
		p.mount.HostPath = dir
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p.pinError("prepare subPath", err)
	}
	defer root.Close()
	return p.pinSubPath(root)
}

// onHost resolves the path of a volume on the machine, in one of the directories.
func (p *pin) onHost(dirs []string, path string) error {
	root, rel, err := openHostPath(dirs, path)
	if err != nil {
		return err
	}
	defer root.Close()
	p.base = root.Name()
	if p.sub != "" {
		volume, err := root.OpenRoot(rel)
		if err != nil {
			return p.pinError("prepare subPath", err)
		}
		defer volume.Close()
		p.way = []string{rel}
		return p.pinSubPath(volume)
	}
	if root.Name() == "/" {
		p.mount.HostPath = path // the whole file system is allowed, so a path cannot leave it
		return nil
	}
	if err := p.holdPath(root, rel, true); err != nil {
		return fmt.Errorf("volume %q: hostPath %s cannot be opened%s", p.volume, path, openReason(err))
	}
	return nil
}

// pinSubPath resolves the subPath of a volume. Its errors hide the cause, because containers must not learn about the files of the machine.
func (p *pin) pinSubPath(root *os.Root) error {
	if _, err := root.Stat(p.sub); errors.Is(err, fs.ErrNotExist) {
		if err := makeBelow(root, p.sub); err != nil {
			return p.pinError("create subPath directory", err)
		}
	}
	if err := p.holdPath(root, p.sub, false); err != nil {
		return p.pinError("prepare subPath", err)
	}
	return nil
}

func (p *pin) pinError(what string, err error) error {
	return fmt.Errorf("failed to %s for volumeMount %q of container %q%s", what, p.volume, p.container, openReason(err))
}

// errNotHeld refuses a part of a volume that a container can write to.
var errNotHeld = errors.New("this node may not mount, so the runtime would look for it a second time, when a container may have put a link there: " +
	"mount the volume without subPath, or run the node with the right to mount (CAP_SYS_ADMIN)")

// openReason returns a reason that reveals no files of the machine: a full disk, or that this node may not
// mount.
func openReason(err error) string {
	for _, known := range []error{syscall.ENOSPC, syscall.EDQUOT, errNotHeld} {
		if errors.Is(err, known) {
			return ": " + known.Error()
		}
	}
	return ""
}

// holdPath opens a name in a directory, and sets the path for the runtime: a mount of the opened file, or the path that the runtime opens.
func (p *pin) holdPath(root *os.Root, name string, recursive bool) error {
	if p.v.mounts {
		target, err := p.targetPath()
		if err != nil {
			return err
		}
		p.mount.HostPath = target
		return bindMount(root, name, target, p.mount.Propagation, recursive)
	}
	if _, err := root.Stat(name); err != nil {
		return err
	}
	switch {
	case p.v.cfg.SubPaths:
		p.mount.HostPath, p.mount.ImageSubPath = p.base, strings.Join(append(p.way, path.Clean(filepath.ToSlash(name))), "//")
	case p.keep:
		p.mount.HostPath = filepath.Join(root.Name(), name)
	default:
		return errNotHeld
	}
	return nil
}

// targetPath returns the private path of the mount, and makes its directory.
func (p *pin) targetPath() (string, error) {
	if !isPlainName(p.container) || !isPlainName(p.volume) {
		return "", fmt.Errorf("%q and %q cannot be names", p.volume, p.container)
	}
	dir := filepath.Join(p.v.pods, string(p.uid), subPathsDir, p.volume, p.container)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	return filepath.Join(dir, strconv.Itoa(p.index)), nil
}

// makeBelow makes the missing directories of a path, with the mode of the volume: a runtime would make them only for root, and without the group of
// the pod.
func makeBelow(root *os.Root, name string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	at := ""
	for part := range strings.SplitSeq(path.Clean(filepath.ToSlash(name)), "/") {
		at = path.Join(at, part)
		err := root.Mkdir(at, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		mode := info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		if err := changeOne(root, at, -1, func(fs.FileMode) fs.FileMode { return mode }); err != nil {
			return err
		}
	}
	return nil
}
