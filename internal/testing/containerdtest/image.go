// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image is an image of one layer.
type Image struct {
	// Names are the names of the image, with registry and tag.
	Names []string
	// Files are its files by their absolute paths. The folders above them need not be named.
	Files map[string]File
	// The other fields are the defaults of a container with the image.
	Entrypoint, Cmd, Env     []string
	User, WorkingDir, Signal string
}

// File is a file of an image.
type File struct {
	// Mode has the permissions, 0 meaning 0o755, and optionally os.ModeDir, os.ModeSticky and os.ModeSetuid.
	Mode os.FileMode
	Data []byte
	// Link makes it a symbolic link.
	Link string
	// UID and GID are the owners.
	UID, GID int
}

// BusyboxImage returns an image with the machine's static busybox and a shell, for examples that run a command.
func BusyboxImage(names ...string) (Image, error) {
	program, err := exec.LookPath("busybox")
	if err != nil {
		return Image{}, fmt.Errorf("make an image of busybox: %w; install busybox-static", err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return Image{}, fmt.Errorf("make an image of busybox: %w", err)
	}
	applets, err := exec.Command(program, "--list").Output() //nolint:noctx // the command ends at once
	if err != nil {
		return Image{}, fmt.Errorf("ask busybox for its applets: %w", err)
	}
	files := map[string]File{
		"/bin/busybox": {Data: data},
		"/tmp":         {Mode: os.ModeDir | os.ModeSticky | 0o777},
		"/root":        {Mode: os.ModeDir | 0o700},
		"/etc/passwd":  {Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		"/etc/group":   {Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			files["/bin/"+applet] = File{Link: "/bin/busybox"}
		}
	}
	return Image{Names: names, Files: files, Cmd: []string{"sh"}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}, nil
}

// PauseImage returns an image for sandboxes. Its program waits and reaps orphans.
func PauseImage(ctx context.Context, names ...string) (Image, error) {
	dir, err := os.MkdirTemp("", "vk-pause-")
	if err != nil {
		return Image{}, fmt.Errorf("build the program of sandboxes: %w", err)
	}
	defer os.RemoveAll(dir)
	program := path.Join(dir, "pause")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program,
		"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest/pause")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return Image{}, fmt.Errorf("build the program of sandboxes: %w: %s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return Image{}, fmt.Errorf("build the program of sandboxes: %w", err)
	}
	return Image{Names: names, Files: map[string]File{"/pause": {Data: data}}, Entrypoint: []string{"/pause"}, User: "65535:65535"}, nil
}

// Archive returns the image in the format of docker save, which all runtimes can load.
func (i Image) Archive() ([]byte, error) {
	layer, err := i.layerArchive()
	if err != nil {
		return nil, fmt.Errorf("make image %v: %w", i.Names, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Env": i.Env, "User": i.User, "WorkingDir": i.WorkingDir, "StopSignal": i.Signal},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hexDigest(layer)}},
	})
	if err != nil {
		return nil, fmt.Errorf("make image %v: %w", i.Names, err)
	}
	configName := hexDigest(config) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": configName, "RepoTags": i.Names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, fmt.Errorf("make image %v: %w", i.Names, err)
	}
	return makeArchive([]entry{{"manifest.json", File{Mode: 0o644, Data: manifest}}, {configName, File{Mode: 0o644, Data: config}}, {"layer.tar", File{Mode: 0o644, Data: layer}}})
}

// layerArchive returns the archive of the files, in a fixed order.
func (i Image) layerArchive() ([]byte, error) {
	all := map[string]File{}
	for name, file := range i.Files {
		all[strings.TrimPrefix(name, "/")] = file
		for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
			if _, named := i.Files["/"+dir]; !named {
				all[dir] = File{Mode: os.ModeDir | 0o755}
			}
		}
	}
	entries := make([]entry, 0, len(all))
	for name, file := range all {
		entries = append(entries, entry{name, file})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return makeArchive(entries)
}

// entry is a file of an archive.
type entry struct {
	name string
	File
}

func makeArchive(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(e.tarHeader()); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return out.Bytes(), nil
}

// tarHeader translates the bits that os.FileMode and tar write differently.
func (e entry) tarHeader() *tar.Header {
	h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Mode: int64(e.Mode.Perm()), Size: int64(len(e.Data)), Linkname: e.Link, Uid: e.UID, Gid: e.GID}
	if h.Mode == 0 {
		h.Mode = 0o755
	}
	if e.Mode&os.ModeSetuid != 0 {
		h.Mode |= 0o4000
	}
	if e.Mode&os.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case e.Link != "":
		h.Typeflag, h.Size = tar.TypeSymlink, 0
	case e.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
	}
	return h
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Import gives containerd images.
func (c *Containerd) Import(ctx context.Context, images ...Image) error {
	for _, image := range images {
		data, err := image.Archive()
		if err != nil {
			return err
		}
		if err := c.importArchive(ctx, "-", bytes.NewReader(data)); err != nil {
			return fmt.Errorf("import %v: %w", image.Names, err)
		}
	}
	return nil
}

// ImportFile gives containerd the images of an archive in the format of docker save or of OCI.
func (c *Containerd) ImportFile(ctx context.Context, path string) error {
	if err := c.importArchive(ctx, path, nil); err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	return nil
}
