// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is a file of a layer.
type entry struct {
	kind byte   // tar.TypeReg, tar.TypeDir or tar.TypeSymlink
	mode int64  // permissions, with the bit for setuid
	link string // target of a symbolic link
	data []byte
}

// tree has the contents of one layer, by absolute path. It keeps its first error for makeLayer, so that its callers need no error
// checks.
type tree struct {
	entries map[string]entry
	err     error
}

func newTree() *tree { return &tree{entries: map[string]entry{}} }

func (t *tree) recordError(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *tree) putEntry(name string, e entry) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if _, ok := t.entries[dir]; !ok {
			t.entries[dir] = entry{kind: tar.TypeDir, mode: 0o755}
		}
	}
	t.entries[name] = e
}

func (t *tree) addText(name, data string) {
	t.putEntry(name, entry{kind: tar.TypeReg, mode: 0o644, data: []byte(data)})
}

func (t *tree) addScript(name, data string) {
	t.putEntry(name, entry{kind: tar.TypeReg, mode: 0o755, data: []byte(data)})
}

func (t *tree) addFolder(name string, mode int64) {
	t.putEntry(name, entry{kind: tar.TypeDir, mode: mode})
}

func (t *tree) addLink(name, to string) {
	t.putEntry(name, entry{kind: tar.TypeSymlink, mode: 0o777, link: to})
}

// addProgram copies a program of this machine; symbolic links to it are followed.
func (t *tree) addProgram(name, source string) {
	data, err := os.ReadFile(source)
	if err != nil {
		t.recordError(fmt.Errorf("read a file for an image: %w", err))
		return
	}
	t.putEntry(name, entry{kind: tar.TypeReg, mode: 0o755, data: data})
}

// addDynamic copies programs of this machine to /usr/bin, with their libraries.
func (t *tree) addDynamic(names ...string) {
	for _, name := range names {
		source, err := exec.LookPath(name)
		if err != nil {
			t.recordError(fmt.Errorf("find a program for an image: %w", err))
			return
		}
		t.addProgram(path.Join("/usr/bin", filepath.Base(name)), source)
		if isStatic(source) {
			continue
		}
		out, err := exec.Command("ldd", source).Output() //nolint:noctx // it reads one file
		if err != nil {
			t.recordError(fmt.Errorf("find the libraries of %s: %w", source, err))
			return
		}
		for _, library := range libraryPaths(string(out)) {
			t.addProgram(library, library)
		}
	}
}

// isStatic reports whether a program loads no libraries. ldd fails for such a program.
func isStatic(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false // ldd reports the error
	}
	defer func() { _ = file.Close() }()
	needed, err := file.ImportedLibraries()
	return err == nil && len(needed) == 0
}

// libraryPaths returns the paths in the output of ldd: "name => path (address)" and, for the loader, "path
// (address)".
func libraryPaths(ldd string) []string {
	var paths []string
	for line := range strings.Lines(ldd) {
		_, rest, found := strings.Cut(line, "=>")
		if !found {
			rest = line
		}
		if fields := strings.Fields(rest); len(fields) > 0 && filepath.IsAbs(fields[0]) {
			paths = append(paths, fields[0])
		}
	}
	return paths
}

// linkApplets links the names of busybox's programs to it, except for existing names.
func (t *tree) linkApplets(busybox string) {
	out, err := exec.Command(busybox, "--list").Output() //nolint:noctx // it prints a list
	if err != nil {
		t.recordError(fmt.Errorf("list the programs of %s: %w", busybox, err))
		return
	}
	t.addProgram("/bin/busybox", busybox)
	for _, name := range strings.Fields(string(out)) {
		at, taken := "/bin/"+name, t.hasEntry("/bin/"+name) || t.hasEntry("/usr/bin/"+name)
		if !taken {
			t.addLink(at, "/bin/busybox")
		}
	}
}

func (t *tree) hasEntry(name string) bool { _, ok := t.entries[name]; return ok }

// makeLayer makes the layer. Equal files give equal bytes, so that images share the layer.
func (t *tree) makeLayer() (v1.Layer, error) {
	if t.err != nil {
		return nil, t.err
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[name]
		header := &tar.Header{
			Name: strings.TrimPrefix(name, "/"), Typeflag: e.kind, Mode: e.mode, Linkname: e.link, Size: int64(len(e.data)), Format: tar.FormatPAX,
		}
		if e.kind == tar.TypeDir {
			header.Name += "/"
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("write %s to a layer: %w", name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("write %s to a layer: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
}
