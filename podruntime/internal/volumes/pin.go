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

// pin finds what a container gets of a volume, and keeps it.
//
// The race: a container that runs can write the volume. If the runtime were told a path in it, the
// container could make a directory on that path a link to anything of the machine, after the check and before
// the runtime mounts. So what was opened is mounted itself, by its descriptor, at a place of ours, and the
// runtime is told that place. Where nothing can be mounted, the runtime has no more rights than the containers, and
// gets the path that was checked, without links.
type pin struct {
	v           *Volumes
	uid         types.UID
	volume      string
	container   string
	index       int
	sub         string // the way into the volume; "" is all of it
	propagation runtimeapi.MountPropagation
	keep        bool // the volume has versions: its own links are good, and lead to the one that counts
}

// in returns the path for a volume at dir, a directory of ours.
func (p *pin) in(dir string) (string, error) {
	if p.sub == "" {
		return dir, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", p.failed("prepare subPath", err)
	}
	defer root.Close()
	return p.below(root)
}

// onHost returns the path for a volume that is a path of the machine, in one of the directories.
func (p *pin) onHost(dirs []string, path string) (string, error) {
	root, rel, err := host(dirs, path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if p.sub != "" {
		volume, err := root.OpenRoot(rel)
		if err != nil {
			return "", p.failed("prepare subPath", err)
		}
		defer volume.Close()
		return p.below(volume)
	}
	if root.Name() == "/" {
		return path, nil // all of the machine is allowed: nothing can be escaped from
	}
	result, err := p.hold(root, rel, true)
	if err != nil {
		return "", fmt.Errorf("volume %q: hostPath %s cannot be opened%s", p.volume, path, lackOfRoom(err))
	}
	return result, nil
}

// below returns the path for the subPath of a volume. Why it fails is not said: containers are not to find out
// what is on the machine.
func (p *pin) below(root *os.Root) (string, error) {
	if _, err := root.Stat(p.sub); errors.Is(err, fs.ErrNotExist) {
		if err := makeBelow(root, p.sub); err != nil {
			return "", p.failed("create subPath directory", err)
		}
	}
	result, err := p.hold(root, p.sub, false)
	if err != nil {
		return "", p.failed("prepare subPath", err)
	}
	return result, nil
}

func (p *pin) failed(what string, err error) error {
	return fmt.Errorf("failed to %s for volumeMount %q of container %q%s", what, p.volume, p.container, lackOfRoom(err))
}

// lackOfRoom says that a disk is full, if that is why something fails: it tells nothing of what is on the machine.
func lackOfRoom(err error) string {
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) {
			return ": " + full.Error()
		}
	}
	return ""
}

// hold opens a name in a directory and returns a path that stands for what was opened.
func (p *pin) hold(root *os.Root, name string, recursive bool) (string, error) {
	if p.v.mounts {
		target, err := p.target()
		if err != nil {
			return "", err
		}
		return target, bind(root, name, target, p.propagation, recursive)
	}
	if _, err := root.Stat(name); err != nil {
		return "", err
	}
	full := filepath.Join(root.Name(), name)
	if p.keep {
		return full, nil
	}
	base, err := filepath.EvalSymlinks(root.Name())
	if err != nil {
		return "", err
	}
	if full, err = filepath.EvalSymlinks(full); err == nil && !inside(base, full) {
		err = errors.New("it leads out of the volume")
	}
	return full, err
}

// target returns the place of ours, and makes the directory for it.
func (p *pin) target() (string, error) {
	if !plain(p.container) || !plain(p.volume) {
		return "", fmt.Errorf("%q and %q cannot be names", p.volume, p.container)
	}
	dir := filepath.Join(p.v.pods, string(p.uid), subPathsDir, p.volume, p.container)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	return filepath.Join(dir, strconv.Itoa(p.index)), nil
}

// makeBelow makes the directories of a path that are missing, with the mode of the volume: a runtime
// would make them for root only, and without the group of the pod.
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
		// It is opened, so that a link that is put in its place is not what is changed.
		dir, err := root.Open(at)
		if err != nil {
			return err
		}
		err = dir.Chmod(info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
