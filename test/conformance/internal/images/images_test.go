// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestLibraries(t *testing.T) {
	got := libraryPaths("\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n")
	if want := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLayer(t *testing.T) {
	layer := func() (digest string, names []string) {
		tree := newTree()
		tree.addText("/b/c", "x")
		tree.addLink("/a", "/b/c")
		tree.addFolder("/tmp", 0o1777)
		l, err := tree.makeLayer()
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		stream, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(stream); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				return d.String(), names
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, header.Name)
		}
	}
	first, names := layer()
	if want := []string{"a", "b/", "b/c", "tmp/"}; !slices.Equal(names, want) {
		t.Errorf("got the entries %q, want %q", names, want)
	}
	if second, _ := layer(); second != first {
		t.Errorf("got %s and %s of the same files, want one digest: images share layers by it", first, second)
	}
}

// Where there is no C compiler, Go's programs load no libraries, and ldd fails for them.
func TestAProgramWithoutLibraries(t *testing.T) {
	source, program := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "alone")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tree := newTree()
	Programs{Dir: filepath.Dir(program)}.programAt("/alone")(tree)
	if _, err := tree.makeLayer(); err != nil {
		t.Fatal(err)
	}
	if link := tree.entries["/alone"].link; tree.entries[link].kind != tar.TypeReg {
		t.Errorf("/alone leads to %q, want a program there", link)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	tree := newTree()
	tree.addDynamic("no-such-program-of-this-machine")
	tree.addText("/a", "b")
	if _, err := tree.makeLayer(); err == nil {
		t.Error("got a layer without a program that was asked for")
	}
}
