// SPDX-License-Identifier: Apache-2.0

// Package images keeps unpacked container images: from registries, and from directories with image archives,
// which need no registry.
//
// The guarantee: an image exists with all its files or not at all. Its files are the files in its configuration,
// whose digest is its ID. Nothing of an image is written outside of its directory. Its use of disk and memory is
// bounded. A pull returns an image on disk only if the registry gives every layer of it to the credentials of
// that pull.
//
// The surprise: each image has one directory for all its layers, so two images share nothing on disk. And an
// image in one of the archive directories counts as present on the machine.
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
	// Source is the archive of the image, or "" for a registry.
	Source string
	Config v1.Config
}

// Options are where images come from.
type Options struct {
	// Dirs are directories with archives and OCI layouts.
	Dirs []string
	// Insecure are registries that may be used without TLS, as host:port.
	Insecure []string
	// Mirrors are asked before a registry, by its name: URLs.
	Mirrors map[string]string
	// Own gives files to the users of the image; it needs the rights of root.
	Own bool
}

// Store has the images.
type Store struct {
	dir       string
	options   Options
	transport http.RoundTripper
	turns     turns
	// unpacking has room for one image at a time, because the disk limits it. Nothing is fetched for the image
	// meanwhile.
	unpacking chan struct{}
	// guarded by mu
	mu     sync.Mutex
	images map[string]*Image
	// unread are unreadable paths in the directories of archives, with the reasons.
	unread map[string]string
	// garbage are paths in dir without an image.
	garbage []string
}

const (
	imageFile = "image.json"
	rootDir   = "rootfs"
	newPrefix = ".new-"
)

// Open returns the store in dir. Incomplete work of an earlier process is no image; Sweep removes it.
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

// Sweep removes paths without an image: incomplete work of an ended process, and unreadable images, which users
// pull again. A failed removal is an error, and a later Sweep repeats it.
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

// addGarbage leaves path to a later Sweep.
func (s *Store) addGarbage(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbage = append(s.garbage, path)
}

// Dir is the directory of all images.
func (s *Store) Dir() string { return s.dir }

// Root is the directory with the files of the image.
func (s *Store) Root(id string) string { return filepath.Join(s.imagePath(id), rootDir) }

func (s *Store) imagePath(id string) string {
	_, hex, _ := strings.Cut(id, ":")
	return filepath.Join(s.dir, hex)
}

// Has reports whether the image with that ID is unpacked.
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

// Get returns the image with the name or ID ref. A missing image may come from a directory. The error is
// errdefs.ErrNotFound if there is none.
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

// Pull returns the current image of the name ref, from a directory, else from the registry.
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

// moveAside turns path into garbage, and returns its new place: the old place is free at once, and never shows half
// of it. It makes no new file, because images are removed when the disk is full. The caller holds mu, or is the
// only user of the store.
func (s *Store) moveAside(path string) (string, error) {
	garbage := filepath.Join(s.dir, newPrefix+rand.Text())
	if err := os.Rename(path, garbage); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	s.garbage = append(s.garbage, garbage)
	return garbage, nil
}
