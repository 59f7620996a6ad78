// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// diskLimit is how many bytes the files of one container may hold.
const diskLimit = 16 << 20

// file is a file or a folder. It is never changed, only replaced.
type file struct {
	data     []byte
	mode     fs.FileMode
	modified time.Time
}

// disk is the file system of a container, in memory. Names are absolute and
// clean. It is safe for concurrent use.
type disk struct {
	mu sync.Mutex
	// guarded by mu
	files map[string]file
	size  int
}

func newDisk(now time.Time) *disk {
	d := &disk{files: map[string]file{}}
	for _, name := range []string{"/", "/etc", "/home", "/root", "/tmp", "/var"} {
		d.files[name] = file{mode: fs.ModeDir | 0o755, modified: now}
	}
	return d
}

// clean makes name absolute and short.
func clean(name string) string { return path.Join("/", name) }

// read returns the file called name.
func (d *disk) read(name string) (file, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[clean(name)]
	return f, ok
}

// mkdir makes a folder and its parents.
func (d *disk) mkdir(name string, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mkdirLocked(clean(name), now)
}

func (d *disk) mkdirLocked(name string, now time.Time) error {
	if f, ok := d.files[name]; ok {
		if !f.mode.IsDir() {
			return fmt.Errorf("%s: Not a directory", name)
		}
		return nil
	}
	if err := d.mkdirLocked(path.Dir(name), now); err != nil {
		return err
	}
	d.files[name] = file{mode: fs.ModeDir | 0o755, modified: now}
	return nil
}

// write stores a file, with the folders above it. The disk keeps f.data.
func (d *disk) write(name string, f file) error {
	name = clean(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.files[name]
	if old.mode.IsDir() {
		return fmt.Errorf("%s: Is a directory", name)
	}
	// The name counts as well, so that the number of empty files is bounded.
	cost := len(f.data) + len(name) - len(old.data)
	if d.size+cost > diskLimit {
		return fmt.Errorf("%s: No space left on device", name)
	}
	if err := d.mkdirLocked(path.Dir(name), f.modified); err != nil {
		return err
	}
	d.files[name], d.size = f, d.size+cost
	return nil
}

// remove deletes a file, or a folder with all its contents.
func (d *disk) remove(name string) bool {
	names := d.tree(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range names {
		if n != "/" {
			d.size -= len(d.files[n].data)
			delete(d.files, n)
		}
	}
	return len(names) > 0
}

// tree returns name and all names below it, in order.
func (d *disk) tree(name string) []string {
	name = clean(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for n := range d.files {
		if n == name || name == "/" || strings.HasPrefix(n, name+"/") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// list returns the names in the folder called name.
func (d *disk) list(name string) []string {
	name = clean(name)
	var names []string
	for _, n := range d.tree(name) {
		if n != name && path.Dir(n) == name {
			names = append(names, path.Base(n))
		}
	}
	return names
}
