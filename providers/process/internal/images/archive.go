// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func openArchive(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || strings.HasSuffix(path, ".tar") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

func hasLayout(reader tarball.Opener) (bool, error) {
	docker, oci := false, false
	err := eachEntry(reader, func(h *tar.Header, _ io.Reader) error {
		docker = docker || filepath.Clean(h.Name) == "manifest.json"
		oci = oci || filepath.Clean(h.Name) == "oci-layout"
		return nil
	})
	return oci && !docker, err
}

func eachEntry(reader tarball.Opener, do func(*tar.Header, io.Reader) error) error {
	f, err := reader()
	if err != nil {
		return err
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := do(h, r); err != nil {
			return err
		}
	}
}

// extractFiles extracts the regular files of an archive, and ignores all other entries.
func extractFiles(reader tarball.Opener, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return eachEntry(reader, func(h *tar.Header, r io.Reader) error {
		path := filepath.Clean(h.Name)
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err := root.Create(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	})
}
