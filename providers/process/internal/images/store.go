// SPDX-License-Identifier: Apache-2.0

// Package images stores unpacked container images from registries and from directories with image archives.
//
// The guarantee: an image exists with all its files or not at all. Its files match its configuration, whose
// digest is its ID. Unpacking an image cannot write outside of its directory. Its use of disk and memory is
// limited. A pull returns an existing image only if its credentials have access to every layer.
//
// Note: each image has one directory for all its layers, so images share no disk space. An image in one
// of the archive directories counts as present on the machine.
package images

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

// Image is an image on this machine.
type Image struct {
	// ID is the digest of its configuration, sha256:….
	ID string
	// Tags are its names, such as docker.io/library/busybox:latest.
	Tags []string
	// Digests are its names by digest, such as docker.io/library/busybox@sha256:….
	Digests []string
	// Size is the number of bytes of its files.
	Size uint64
	// Source is the path of the archive with the image, or "" if it came from a registry.
	Source string
	Config v1.Config
}

// Options are the sources of images.
type Options struct {
	// Dirs are directories with archives and OCI layouts.
	Dirs []string
	// Insecure are registries that may be used without TLS, as host:port.
	Insecure []string
	// Mirrors are the URLs of mirrors, by registry.
	Mirrors map[string]string
	// Own preserves the owners of files; it needs root.
	Own bool
}

// Store stores the images.
type Store struct {
	dir       string
	options   Options
	transport http.RoundTripper
	turns     turns
	// unpacking is a semaphore: one image is unpacked at a time, because the disk is the bottleneck. Its layers
	// were fetched before.
	unpacking chan struct{}
	// guarded by mu
	mu     sync.Mutex
	images map[string]*Image
	// unread are the unreadable archives and directories, with the reasons.
	unread map[string]string
	// garbage are paths in dir that belong to no image.
	garbage []string
}

const (
	imageFile = "image.json"
	rootDir   = "rootfs"
	newPrefix = ".new-"
)

// Open returns the store in dir. It ignores incomplete images of an earlier process; Sweep removes them.
func Open(dir string, options Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of images: %w", err)
	}
	s := &Store{dir: dir, options: options, transport: newTransport(options), unpacking: make(chan struct{}, 1), images: map[string]*Image{}, unread: map[string]string{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		image := &Image{}
		err := durable.ReadJSON(filepath.Join(dir, e.Name(), imageFile), image)
		if durable.Passing(err) {
			return nil, err
		}
		if err != nil || s.imagePath(image.ID) != filepath.Join(dir, e.Name()) {
			if _, err := s.moveAside(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("put incomplete images aside: %w", err)
			}
			continue
		}
		s.images[image.ID] = image
	}
	return s, nil
}

// Sweep removes paths that belong to no image: incomplete images of an ended process, and unreadable images,
// which have to be pulled again. If a removal fails, a later Sweep retries it.
func (s *Store) Sweep() error {
	s.mu.Lock()
	garbage := s.garbage
	s.garbage = nil
	s.mu.Unlock()
	var errs []error
	for _, path := range garbage {
		if err := RemoveTree(path); err != nil {
			errs = append(errs, err)
			s.addGarbage(path)
		}
	}
	return errors.Join(errs...)
}

// addGarbage leaves the removal of path to a later Sweep.
func (s *Store) addGarbage(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage = append(s.garbage, path)
}

// Dir returns the directory of all images.
func (s *Store) Dir() string { return s.dir }

// Root returns the directory with the files of the image.
func (s *Store) Root(id string) string { return filepath.Join(s.imagePath(id), rootDir) }

func (s *Store) imagePath(id string) string {
	_, hex, _ := strings.Cut(id, ":")
	return filepath.Join(s.dir, hex)
}

// Has reports whether the image with the ID is unpacked.
func (s *Store) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.images[id] != nil
}

// List returns every unpacked image.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Image
	for _, image := range s.images {
		all = append(all, image.cloneImage())
	}
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (i *Image) cloneImage() Image {
	c := *i
	c.Tags, c.Digests = slices.Clone(i.Tags), slices.Clone(i.Digests)
	return c
}

// Get returns the image with the name or ID ref. If the store does not have it, Get looks in the archive
// directories. The error is errdefs.ErrNotFound if there is no image.
func (s *Store) Get(ctx context.Context, ref string) (Image, error) {
	if image, ok := s.lookupImage(ref); ok {
		return image, nil
	}
	name, err := parseName(ref, s.options.Insecure)
	if err != nil {
		return Image{}, err
	}
	return s.fromDirs(ctx, name)
}

func (s *Store) lookupImage(ref string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range []string{ref, "sha256:" + ref} {
		if image := s.images[id]; image != nil {
			return image.cloneImage(), true
		}
	}
	name, err := parseName(ref, nil)
	if err != nil {
		return Image{}, false
	}
	for _, image := range s.images {
		if slices.Contains(image.Tags, displayName(name)) || slices.Contains(image.Digests, displayName(name)) {
			return image.cloneImage(), true
		}
	}
	return Image{}, false
}

// Pull returns the current image with the name ref, from an archive directory or else from the registry.
func (s *Store) Pull(ctx context.Context, ref string, auth Auth) (Image, error) {
	name, err := parseName(ref, s.options.Insecure)
	if err != nil {
		return Image{}, err
	}
	image, err := s.fromDirs(ctx, name)
	if err == nil || !errdefs.IsNotFound(err) {
		return image, err
	}
	image, refused := s.fromRegistry(ctx, name, auth)
	if refused != nil && errors.Is(err, errUnread) {
		refused = fmt.Errorf("%w; %s", refused, err.Error()) // the registry determines the kind of the error
	}
	return image, refused
}

// Remove removes the image with the name or ID ref, if it exists.
func (s *Store) Remove(ref string) error {
	image, ok := s.lookupImage(ref)
	if !ok {
		return nil
	}
	s.mu.Lock()
	garbage, err := s.moveAside(s.imagePath(image.ID))
	if err == nil {
		delete(s.images, image.ID)
	}
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return RemoveTree(garbage) // after a failure, Sweep removes the tree
}

// moveAside atomically renames path, adds it to the garbage, and returns the new path. It creates no file,
// because images are removed when the disk is full. The caller holds mu, or is the only user of the store.
func (s *Store) moveAside(path string) (string, error) {
	garbage := filepath.Join(s.dir, newPrefix+rand.Text())
	if err := os.Rename(path, garbage); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	s.garbage = append(s.garbage, garbage)
	return garbage, nil
}
