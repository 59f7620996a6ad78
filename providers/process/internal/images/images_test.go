// SPDX-License-Identifier: Apache-2.0

//go:build unix

package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

type entry struct {
	name, link, content string
	kind                byte
}

func layerOf(t *testing.T, entries ...entry) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.content)), Uid: os.Getuid(), Gid: os.Getgid()}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if e.kind == tar.TypeDir {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func unpackAll(t *testing.T, layers ...v1.Layer) (string, error) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "outer", "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	u := &unpacker{dir: root, own: os.Geteuid() == 0, limit: 1 << 20}
	for _, l := range layers {
		id, err := l.DiffID()
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(u.unpackLayer(t.Context(), r, id.String()), r.Close()); err != nil {
			return root, err
		}
	}
	return root, nil
}

// TestSecurityI3LayersStayInTheirRoot unpacks the tricks by which images have written outside their root.
func TestSecurityI3LayersStayInTheirRoot(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("good"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(victim)
	for what, entries := range map[string][]entry{
		"name with dots":             {{name: "../../../../../../../.." + victim, content: "bad"}},
		"absolute name":              {{name: victim, content: "bad"}},
		"link to a directory":        {{name: "d", link: dir, kind: tar.TypeSymlink}, {name: "d/victim", content: "bad"}},
		"link with dots":             {{name: "d", link: "../../../../../../../.." + dir, kind: tar.TypeSymlink}, {name: "d/victim", content: "bad"}},
		"link to the file":           {{name: "f", link: victim, kind: tar.TypeSymlink}, {name: "f", content: "bad"}},
		"hard link to the file":      {{name: "f", link: victim, kind: tar.TypeLink}, {name: "f", content: "bad"}},
		"hard link through a link":   {{name: "d", link: dir, kind: tar.TypeSymlink}, {name: "f", link: "d/victim", kind: tar.TypeLink}},
		"whiteout through a link":    {{name: "d", link: dir, kind: tar.TypeSymlink}, {name: "d/.wh.victim"}},
		"opaque through a link":      {{name: "d", link: dir, kind: tar.TypeSymlink}, {name: "d/.wh..wh..opq"}},
		"whiteout of the parent":     {{name: "a/.wh..."}, {name: ".wh..."}},
		"directory through a link":   {{name: "d", link: dir, kind: tar.TypeSymlink}, {name: "d/victim/", kind: tar.TypeDir}},
		"links that go round":        {{name: "a", link: "b", kind: tar.TypeSymlink}, {name: "b", link: "a", kind: tar.TypeSymlink}, {name: "a/x", content: "bad"}},
		"link of links with dots":    {{name: "a", link: "..", kind: tar.TypeSymlink}, {name: "b", link: "a/a/a/a" + dir, kind: tar.TypeSymlink}, {name: "b/victim", content: "bad"}},
		"device":                     {{name: "dev", kind: tar.TypeBlock}},
		"whiteout that has no name":  {{name: ".wh."}},
		"mode of a file by its link": {{name: "f", link: victim, kind: tar.TypeSymlink}, {name: "f", link: victim, kind: tar.TypeSymlink}},
	} {
		t.Run(what, func(t *testing.T) {
			root, err := unpackAll(t, layerOf(t, entries...))
			t.Log("error:", err)
			if data, err := os.ReadFile(victim); err != nil || string(data) != "good" {
				t.Fatalf("the file outside: got %q, %v", data, err)
			}
			if outer, _ := os.ReadDir(filepath.Dir(root)); len(outer) != 1 {
				t.Errorf("beside the root: got %v", outer)
			}
			if info, err := os.Stat(victim); err != nil || info.Mode() != 0o600 {
				t.Errorf("mode of the file outside: got %v, %v", info.Mode(), err)
			}
			if _, err := os.Lstat(filepath.Join(root, "dev")); err == nil {
				t.Error("there is a device")
			}
		})
	}
}

func TestLayersAreJoined(t *testing.T) {
	root, err := unpackAll(t,
		layerOf(t, entry{name: "run/", kind: tar.TypeDir}, entry{name: "var/", kind: tar.TypeDir}, entry{name: "var/run", link: "/run", kind: tar.TypeSymlink},
			entry{name: "gone", content: "1"}, entry{name: "opaque/old", content: "1"}, entry{name: "f", content: "1"}, entry{name: "deep/er/old", content: "1"}),
		layerOf(t, entry{name: "var/run/pid", content: "2"}, entry{name: ".wh.gone"}, entry{name: "opaque/new", content: "2"},
			entry{name: "opaque/.wh..wh..opq"}, entry{name: "f", content: "2"}, entry{name: "hard", link: "f", kind: tar.TypeLink}, entry{name: "deep/.wh.er"}))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"run/pid": "2", "opaque/new": "2", "f": "2", "hard": "2"} {
		if data, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(data) != want {
			t.Errorf("%s: got %q, %v, want %q", path, data, err, want)
		}
	}
	for _, path := range []string{"gone", "opaque/old", "deep/er"} {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

func testImage(t *testing.T, content string) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, layerOf(t, entry{name: "f", content: content}))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestABrokenArchiveHidesNoOtherImage checks that a broken archive hides no image of another archive and no
// image of a registry.
func TestABrokenArchiveHidesNoOtherImage(t *testing.T) {
	dir, absent := t.TempDir(), filepath.Join(t.TempDir(), "absent")
	tag, err := name.NewTag("docker")
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "z.tar")
	if err := tarball.WriteToFile(good, tag, testImage(t, "docker")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]string{
		"cut.tar": string(whole[:700]), "text.tar": strings.Repeat("no archive ", 100), "text.tgz": "no archive", "empty.tar.gz": "",
		"layout/oci-layout": "{}", "layout/index.json": "{",
	}
	for path, content := range broken {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link.tar")); err != nil {
		t.Fatal(err)
	}
	n := newTenancy(t)
	n.options.Dirs = []string{absent, dir}
	if image, err := n.Get(t.Context(), "docker"); err != nil || image.Source != good {
		t.Errorf("the image of another archive: got %q, %v", image.Source, err)
	}
	_, err = n.Get(t.Context(), "example.com/absent")
	if !errdefs.IsNotFound(err) {
		t.Errorf("an absent image: got %v, want that it is not there", err)
	}
	for _, path := range []string{"absent", "cut.tar", "text.tar", "text.tgz", "empty.tar.gz", "layout", "link.tar"} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want a word of %s", err, path)
		}
	}
	if err := n.pull("private", nil); err != nil {
		t.Errorf("an image of the registry: %v", err)
	}
	if _, err := n.Pull(t.Context(), n.host+"/absent:1", Auth{}); err == nil || !strings.Contains(err.Error(), "cut.tar") || errdefs.IsNotFound(err) {
		t.Errorf("an image that is nowhere: got %v, want what the registry says and a word of the archive", err)
	}
}

func TestImagesOfADirectory(t *testing.T) {
	dir := t.TempDir()
	tag, err := name.NewTag("docker")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(dir, "docker.tar"), tag, testImage(t, "docker")); err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(filepath.Join(dir, "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	err = path.AppendImage(testImage(t, "layout"), layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "example.com/layout:v1"}))
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	s, err := Open(state, Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{"docker": "docker", "docker.io/library/docker:latest": "docker", "example.com/layout:v1": "layout"} {
		image, err := s.Get(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if data, err := os.ReadFile(filepath.Join(s.Root(image.ID), "f")); err != nil || string(data) != want {
			t.Errorf("%s: got %q, %v", ref, data, err)
		}
	}
	if _, err := s.Get(t.Context(), "absent"); !errdefs.IsNotFound(err) {
		t.Errorf("an absent image: got %v", err)
	}
	again, err := Open(state, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if list := again.List(); len(list) != 2 || !strings.HasPrefix(list[0].ID, "sha256:") {
		t.Errorf("images of another process: got %v", list)
	}
	if err := again.Remove("docker"); err != nil || len(again.List()) != 1 {
		t.Errorf("after a removal: got %v, %v", again.List(), err)
	}
}
