// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// makeRoot makes the root of a container: the files of the machine, or of an image, with the mounts of the pod
// over them. Missing directories for mounts are made in memory: the machine's directories stay unchanged.
func makeRoot(e Entry) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	r := root{dir: e.Root, made: map[string]bool{}}
	if err := r.base(e); err != nil {
		return fmt.Errorf("root of the container: %w", err)
	}
	if e.Hide != "" && e.Image == "" { // first, because a volume may be mounted in it; the sources of volumes are outside the new root
		if err := unix.Mount("tmpfs", join(r.dir, e.Hide), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
			return fmt.Errorf("hide the files of pods: %w", err)
		}
	}
	for _, path := range e.Without {
		if err := r.remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	for _, m := range e.Mounts {
		if err := r.mount(m); err != nil {
			return fmt.Errorf("mount at %s: %w", m.Target, err)
		}
	}
	// Without permission to mount a proc, the machine's proc stays.
	_ = unix.Mount("proc", join(r.dir, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if e.Cgroup != "" { // programs read their limits there
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
			return fmt.Errorf("cgroup namespace: %w", err)
		}
		if err := r.mount(Mount{Source: e.Cgroup, Target: "/sys/fs/cgroup", ReadOnly: true}); err != nil {
			return fmt.Errorf("mount the cgroup of the container: %w", err)
		}
	}
	if r.own {
		if _, err := r.place(e.Dir, true); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
	}
	for _, h := range e.Hooks {
		if err := runHook(e.Bundle, h); err != nil {
			return fmt.Errorf("hook %s: %w", h.Path, err)
		}
	}
	if err := os.Chdir(r.dir); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the root of the machine: %w", err)
	}
	return os.Chdir("/")
}

// root is the root of a container during its setup.
type root struct {
	dir  string
	made map[string]bool // directories in memory
	own  bool            // the container owns all of it: missing directories are created
}

func (r *root) base(e Entry) error {
	if e.Image != "" {
		return r.overlay(e)
	}
	return r.copyDir("/", "/")
}

// copyDir makes target a directory in memory with the contents of source.
func (r *root) copyDir(source, target string) error {
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	at := join(r.dir, target)
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	// The copy covers the source, but the handle still gives access to it.
	handle, err := unix.Open(source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(handle) }()
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID, fmt.Sprintf("mode=%o", info.Mode().Perm())); err != nil {
		return err
	}
	r.made[target] = true
	for _, e := range entries {
		from, to := fmt.Sprintf("/proc/self/fd/%d/%s", handle, e.Name()), join(at, e.Name())
		if err := bindEntry(from, to, e); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", join(source, e.Name()), err)
		}
	}
	return nil
}

func bindEntry(from, to string, e os.DirEntry) error {
	switch {
	case e.Type()&os.ModeSymlink != 0:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // it is covered at once
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

// mount mounts a volume, and makes missing parent directories.
func (r *root) mount(m Mount) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target, err := r.place(m.Target, info.IsDir())
	if err != nil {
		return err
	}
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !m.ReadOnly {
		return nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(target, &fs); err != nil {
		return err
	}
	locked := uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|locked, "")
}

// place returns the location of path in the root, and makes it if it is missing. It follows links within the root.
func (r *root) place(path string, dir bool) (string, error) {
	at := "/"
	parts := strings.Split(strings.Trim(path, "/"), "/")
	links := 0
	for i := 0; i < len(parts); i++ {
		next := join(at, parts[i])
		full := join(r.dir, next)
		info, err := os.Lstat(full)
		switch {
		case err == nil && info.Mode()&os.ModeSymlink != 0:
			link, err := os.Readlink(full)
			if err != nil {
				return "", err
			}
			if links++; links > maxLinks {
				return "", errors.New("too many links")
			}
			if !strings.HasPrefix(link, "/") {
				link = at + "/" + link
			}
			parts = append(strings.Split(strings.Trim(join(link), "/"), "/"), parts[i+1:]...)
			at, i = "/", -1
			continue
		case err == nil:
		case !errors.Is(err, os.ErrNotExist):
			return "", err
		default:
			if !r.made[at] && (!r.own || at == "/dev" || strings.HasPrefix(at, "/dev/")) {
				if err := r.copyDir(join(r.dir, at), at); err != nil {
					return "", err
				}
			}
			if i == len(parts)-1 && !dir {
				err = os.WriteFile(full, nil, 0o600)
			} else {
				err = os.Mkdir(full, 0o755) //nolint:gosec // others of the container may have to pass
				r.made[next] = true
			}
			if err != nil {
				return "", err
			}
		}
		at = next
	}
	return join(r.dir, at), nil
}

// remove removes a device of the machine from the root.
func (r *root) remove(path string) error {
	at := "/"
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, part := range parts[:len(parts)-1] {
		if at = join(at, part); !r.made[at] {
			if err := r.copyDir(join(r.dir, at), at); err != nil {
				return err
			}
		}
	}
	full := join(r.dir, path)
	if err := unix.Unmount(full, unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove(full)
}

// runHook runs a hook outside the new root. Its input is the state of the container.
func runHook(bundle string, h Hook) error {
	state, err := json.Marshal(map[string]any{"ociVersion": "1.2.0", "id": bundle, "status": "creating", "pid": os.Getpid(), "bundle": bundle})
	if err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := os.StartProcess(h.Path, h.Args, &os.ProcAttr{Env: h.Env, Files: []*os.File{in, os.Stderr, os.Stderr}})
	_ = in.Close()
	_, _ = out.Write(state) // a hook may ignore its input
	_ = out.Close()
	if err != nil {
		return err
	}
	ended, err := p.Wait()
	if err == nil && !ended.Success() {
		err = errors.New(ended.String())
	}
	return err
}

// maxLinks is the largest number of links in a path, as in the kernel.
const maxLinks = 40
