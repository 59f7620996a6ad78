// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

// fromDirs adds the image from the first directory that has it. It skips unreadable archives and directories: it
// logs each of them once, and the error names them if the image is not found elsewhere.
func (s *Store) fromDirs(ctx context.Context, ref name.Reference) (Image, error) {
	done, err := s.turns.takeTurn(ctx, turn{ref: displayName(ref), local: true})
	if err != nil {
		return Image{}, err
	}
	defer done()
	var unread []error
	for _, dir := range s.options.Dirs {
		paths, err := imagePaths(dir)
		if err != nil {
			unread = append(unread, s.logUnreadable(ctx, dir, err))
		}
		for _, path := range paths {
			from, err := s.openImage(path, ref)
			if errdefs.IsNotFound(err) {
				continue
			}
			if err != nil {
				unread = append(unread, s.logUnreadable(ctx, path, err))
				continue
			}
			defer from.close()
			names := Image{Source: path}
			if _, ok := ref.(name.Tag); ok {
				names.Tags = []string{displayName(ref)}
			}
			if digest, err := from.Digest(); err == nil {
				names.Digests = []string{displayName(ref.Context().Digest(digest.String()))}
			}
			image, err := s.addImage(ctx, from.Image, names, false)
			if err != nil {
				return Image{}, fmt.Errorf("image %s of %s: %w", displayName(ref), path, err)
			}
			return image, nil
		}
	}
	err = errors.Join(unread...)
	switch {
	case err == nil:
		return Image{}, errdefs.NotFoundf("image %s is not on this node", displayName(ref))
	case durable.Full(err) || durable.Passing(err): // the cause is not the image
		return Image{}, fmt.Errorf("look for image %s: %w", displayName(ref), err)
	}
	return Image{}, errdefs.NotFoundf("image %s is not on this node, and %w: %w", displayName(ref), errUnread, err)
}

// errUnread is in the error chain for a missing image if some archives or directories cannot be read.
var errUnread = errors.New("not all of its images can be read")

// logUnreadable logs that path cannot be read, unless it has logged the same error before, and returns the error.
func (s *Store) logUnreadable(ctx context.Context, path string, err error) error {
	err = fmt.Errorf("read images in %s: %w", path, err)
	s.mu.Lock()
	known := s.unread[path] == err.Error()
	s.unread[path] = err.Error()
	s.mu.Unlock()
	if !known {
		log.G(ctx).WithError(err).Warn("process provider: an archive or a directory of images cannot be read; images elsewhere are not affected")
	}
	return err
}

// imagePaths returns the paths in dir that may be images, or dir itself.
func imagePaths(dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err == nil {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		_, err := os.Stat(filepath.Join(path, "oci-layout"))
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case err == nil, strings.HasSuffix(path, ".tar"), strings.HasSuffix(path, ".tar.gz"), strings.HasSuffix(path, ".tgz"):
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// opened is an image in a file, with a function that removes its temporary files.
type opened struct {
	v1.Image
	close func()
}

// openImage finds the image called ref in a layout or an archive.
func (s *Store) openImage(path string, ref name.Reference) (opened, error) {
	info, err := os.Stat(path)
	if err != nil {
		return opened{}, err
	}
	if info.IsDir() {
		return openLayout(path, ref, func() {})
	}
	reader := func() (io.ReadCloser, error) { return openArchive(path) }
	isLayout, err := hasLayout(reader)
	if err != nil {
		return opened{}, err
	}
	if !isLayout {
		return openDocker(reader, ref)
	}
	dir, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return opened{}, err
	}
	remove := func() { _ = RemoveTree(dir) }
	if err := extractFiles(reader, dir); err != nil {
		remove()
		return opened{}, err
	}
	found, err := openLayout(dir, ref, remove)
	if err != nil {
		remove()
	}
	return found, err
}

// openDocker finds an image in the output of docker save.
func openDocker(reader tarball.Opener, ref name.Reference) (opened, error) {
	manifest, err := tarball.LoadManifest(reader)
	if err != nil {
		return opened{}, fmt.Errorf("read the archive: %w", err)
	}
	for _, m := range manifest {
		for _, tag := range m.RepoTags {
			parsed, err := name.NewTag(tag)
			if err != nil || parsed.Name() != ref.Name() {
				continue
			}
			image, err := tarball.Image(reader, &parsed)
			return opened{image, func() {}}, err
		}
	}
	return opened{}, errdefs.NotFound("not in the archive")
}

// Annotations that name an image in a layout.
var nameAnnotations = []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"}

// openLayout finds an image in an OCI layout, for the platform of this machine.
func openLayout(dir string, ref name.Reference, closer func()) (opened, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return opened{}, fmt.Errorf("read the image layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return opened{}, fmt.Errorf("read the image layout: %w", err)
	}
	for _, d := range manifest.Manifests {
		if !isNamed(d, ref) {
			continue
		}
		if !d.MediaType.IsIndex() {
			image, err := index.Image(d.Digest)
			return opened{image, closer}, err
		}
		below, err := index.ImageIndex(d.Digest)
		if err != nil {
			return opened{}, err
		}
		image, err := forPlatform(below)
		return opened{image, closer}, err
	}
	return opened{}, errdefs.NotFound("not in the layout")
}

func isNamed(d v1.Descriptor, ref name.Reference) bool {
	if ref.Identifier() == d.Digest.String() {
		return true
	}
	for _, a := range nameAnnotations {
		value := d.Annotations[a]
		if parsed, err := imageref.Parse(value); value != "" && err == nil && parsed.Name() == ref.Name() {
			return true
		}
	}
	return false
}

func forPlatform(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.Satisfies(imagePlatform()) {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("the image is not made for %s", imagePlatform())
}
