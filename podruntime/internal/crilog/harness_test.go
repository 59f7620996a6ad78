// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// base is the time of the first line of a log.
var base = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const livePath = "pod/app/0.log"

// at returns a log line that was written the given number of seconds after base.
func at(second int, rest string) string {
	return base.Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano) + " " + rest + "\n"
}

// logDir makes a directory of logs with the given files, by path. Files with the suffix .gz are compressed.
func logDir(t *testing.T, files map[string]string) *Dir {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var w io.WriteCloser = f
	if strings.HasSuffix(path, gz) {
		w = gzip.NewWriter(f)
		defer f.Close()
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// read returns the whole log that opts select.
func read(t *testing.T, d *Dir, opts api.ContainerLogOpts) string {
	t.Helper()
	stream, err := d.Read(t.Context(), livePath, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runtime writes the log of a container as a CRI runtime does.
type runtime struct {
	t    *testing.T
	path string
	file *os.File
	n    int
}

func newRuntime(t *testing.T, d *Dir) *runtime {
	r := &runtime{t: t, path: filepath.Join(d.path, livePath)}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.reopen(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.file.Close() })
	return r
}

func (r *runtime) reopen(context.Context, string) error {
	if r.file != nil {
		_ = r.file.Close()
	}
	var err error
	r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	return err
}

func (r *runtime) write(text string) {
	r.t.Helper()
	if _, err := r.file.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

// lines writes n numbered lines.
func (r *runtime) lines(n int) {
	r.t.Helper()
	for range n {
		r.n++
		r.write(time.Now().Format(time.RFC3339Nano) + fmt.Sprintf(" stdout F line %d\n", r.n))
	}
}

// numbered returns the text of the lines from and to, as lines wrote them.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}
