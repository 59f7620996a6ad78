// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// makeDeep makes nested directories of the given depth. The last one contains a file.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { unix.Close(fd) }()
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o755))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	file, err := unix.Openat(fd, "f", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	must(t, err, unix.Close(file))
}

// TestUsageOfADeepTreeIsLinear: the tree has paths longer than the kernel accepts, and more levels than the limit of open files. The time of a walk
// is linear.
func TestUsageOfADeepTreeIsLinear(t *testing.T) {
	for depth, within := range map[int]time.Duration{2000: 3 * time.Second, 20_000: 20 * time.Second} {
		t.Run(strconv.Itoa(depth), func(t *testing.T) {
			w := newWorld(t)
			pod := podOf("u", emptyDir("e", "", ""))
			w.setup(pod)
			makeDeep(t, w.dir(pod, "e"), depth)
			begin := time.Now()
			use, err := w.Usage(t.Context(), pod)
			if took := time.Since(begin); took > within {
				t.Errorf("it took %v, want at most %v", took, within)
			}
			if got := use["e"]; err != nil || got.Inodes != int64(depth)+2 || got.AtLeast {
				t.Errorf("got %+v, %v; want %d inodes: the volume, what is in it, and a file", got, err, depth+2)
			}
		})
	}
}

func TestUsageOfManyFiles(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	const dirs, files = 20, 1000
	for i := range dirs {
		dir := filepath.Join(w.dir(pod, "e"), strconv.Itoa(i))
		must(t, os.Mkdir(dir, 0o755))
		for j := range files {
			must(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(j)), nil, 0o600))
		}
	}
	use, err := w.Usage(t.Context(), pod)
	if got := use["e"]; err != nil || got.Inodes != dirs*files+dirs+1 {
		t.Errorf("got %+v, %v; want %d inodes", got, err, dirs*files+dirs+1)
	}
	// When its context ends, measureDir returns the count so far.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := measureDir(ctx, w.dir(pod, "e"))
	if err == nil || !got.AtLeast || got.Inodes != 1 {
		t.Errorf("without time: got %+v, %v; want the volume itself, and that there may be more", got, err)
	}
}

// TestUsageEntersNoMount: the usage of a volume does not include a mount in the volume.
func TestUsageEntersNoMount(t *testing.T) {
	w := mounting(t)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	at := filepath.Join(w.dir(pod, "e"), "mounted")
	must(t, os.Mkdir(at, 0o755), unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m"), os.WriteFile(filepath.Join(at, "f"), make([]byte, 64<<10), 0o600))
	use, err := w.Usage(t.Context(), pod)
	if got := use["e"]; err != nil || got.Inodes != 1 || got.Bytes >= 64<<10 {
		t.Errorf("got %+v, %v; want the volume alone", got, err)
	}
}

// TestUsageOfATreeThatMoves: leaveDirectory returns errMoved if the directory above is not the directory from which the
// walk came.
func TestUsageOfATreeThatMoves(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.Mkdir(filepath.Join(dir, "c"), 0o755))
	open := func(path string) (int, inode) {
		fd, err := unix.Open(filepath.Join(dir, path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		var s unix.Stat_t
		must(t, unix.Fstat(fd, &s))
		return fd, idOf(&s)
	}
	a, above := open("a")
	unix.Close(a)
	b, own := open("a/b")
	w := &walker{fd: b, dev: own.dev, path: []level{{id: above}, {id: own}}}
	defer func() { unix.Close(w.fd) }()
	must(t, os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "c/b")))
	if err := w.leaveDirectory(); err != errMoved {
		t.Errorf("got %v, want %v", err, errMoved)
	}
}
