// SPDX-License-Identifier: Apache-2.0

// Package images keeps unpacked container images: from registries, and from directories with image
// archives, so that no registry is needed.
//
// The guarantee: an image is there with all its files or not at all, and nothing that an image
// contains is written outside of its directory.
//
// What surprises: layers are unpacked into one directory for each image, so two images share nothing on
// disk; and an image in one of the directories counts as present on the machine.
package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// Image is an image on this machine.
type Image struct {
	// ID is the digest of its configuration, sha256:….
	ID string
	// Tags are its names, such as docker.io/library/busybox:latest.
	Tags []string
	// Digests are its names by digest, such as docker.io/library/busybox@sha256:….
	Digests []string
	// Size is how many bytes its files have.
	Size uint64
	// Source is the archive that it comes from; "" for a registry.
	Source string
	Config v1.Config
}

// Options are where images come from.
type Options struct {
	// Dirs are directories with archives and OCI layouts.
	Dirs []string
	// Insecure are the registries that may be spoken to without TLS, as host:port.
	Insecure []string
	// Mirrors are asked before a registry, by its name: URLs.
	Mirrors map[string]string
	// Own makes files belong to the users of the image; it needs the rights of root.
	Own bool
}

// Store has the images.
type Store struct {
	dir     string
	options Options
	// unpacking lets one image be unpacked at a time: it is bound by the disk.
	unpacking sync.Mutex
	// guarded by mu
	mu     sync.Mutex
	images map[string]*Image
}

const (
	imageFile = "image.json"
	rootDir   = "rootfs"
	newPrefix = ".new-"
)

// Open returns the store in dir, without what an earlier process did not finish.
func Open(dir string, options Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of images: %w", err)
	}
	s := &Store{dir: dir, options: options, images: map[string]*Image{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			if err := RemoveTree(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		image := &Image{}
		if err := shim.ReadJSON(filepath.Join(dir, e.Name(), imageFile), image); err != nil {
			return nil, fmt.Errorf("read an image of an earlier process (remove %s): %w", filepath.Join(dir, e.Name()), err)
		}
		s.images[image.ID] = image
	}
	return s, nil
}

// Dir is the directory of all images.
func (s *Store) Dir() string { return s.dir }

// Root is the directory with the files of the image.
func (s *Store) Root(id string) string { return filepath.Join(s.path(id), rootDir) }

func (s *Store) path(id string) string {
	_, hex, _ := strings.Cut(id, ":")
	return filepath.Join(s.dir, hex)
}

// List returns every image that is unpacked.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Image
	for _, image := range s.images {
		all = append(all, image.clone())
	}
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (i *Image) clone() Image {
	c := *i
	c.Tags, c.Digests = slices.Clone(i.Tags), slices.Clone(i.Digests)
	return c
}

// Get returns the image called ref, which is its name or its ID. One that is not there may come
// from a directory. The error is errdefs.ErrNotFound if there is none.
func (s *Store) Get(ctx context.Context, ref string) (Image, error) {
	if image, ok := s.lookup(ref); ok {
		return image, nil
	}
	name, err := parse(ref, s.options.Insecure)
	if err != nil {
		return Image{}, err
	}
	return s.fromDirs(ctx, name)
}

func (s *Store) lookup(ref string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range []string{ref, "sha256:" + ref} {
		if image := s.images[id]; image != nil {
			return image.clone(), true
		}
	}
	name, err := parse(ref, nil)
	if err != nil {
		return Image{}, false
	}
	for _, image := range s.images {
		if slices.Contains(image.Tags, display(name)) || slices.Contains(image.Digests, display(name)) {
			return image.clone(), true
		}
	}
	return Image{}, false
}

// Pull returns the image called ref as it is now: that of a directory, else of the registry.
func (s *Store) Pull(ctx context.Context, ref string, auth Auth) (Image, error) {
	name, err := parse(ref, s.options.Insecure)
	if err != nil {
		return Image{}, err
	}
	image, err := s.fromDirs(ctx, name)
	if err == nil || !errdefs.IsNotFound(err) {
		return image, err
	}
	return s.fromRegistry(ctx, name, auth)
}

// Remove removes the image called ref, which is its ID or a name. Removing one that is not there is no error.
func (s *Store) Remove(ref string) error {
	image, ok := s.lookup(ref)
	if !ok {
		return nil
	}
	s.mu.Lock()
	delete(s.images, image.ID)
	s.mu.Unlock()
	// Renamed first: what is half removed must not be found by a later process.
	gone := filepath.Join(s.dir, newPrefix+filepath.Base(s.path(image.ID)))
	if err := os.Rename(s.path(image.ID), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove image %s: %w", ref, err)
	}
	return RemoveTree(gone)
}

// add makes the image from's, which is called tag, one of the store's.
func (s *Store) add(ctx context.Context, from v1.Image, names Image) (Image, error) {
	id, err := from.ConfigName()
	if err != nil {
		return Image{}, fmt.Errorf("read the configuration of the image: %w", err)
	}
	names.ID = id.String()
	if image, ok := s.rename(names); ok {
		return image, s.save(image)
	}
	s.unpacking.Lock()
	defer s.unpacking.Unlock()
	if image, ok := s.rename(names); ok {
		return image, s.save(image)
	}
	config, err := from.ConfigFile()
	if err != nil {
		return Image{}, fmt.Errorf("read the configuration of the image: %w", err)
	}
	names.Config = config.Config
	if err := s.unpack(ctx, from, &names); err != nil {
		return Image{}, err
	}
	s.mu.Lock()
	s.images[names.ID] = &names
	s.mu.Unlock()
	image, _ := s.rename(names)
	return image, nil
}

// unpack writes the files of the image, and then makes them appear at once.
func (s *Store) unpack(ctx context.Context, from v1.Image, image *Image) error {
	dir, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = RemoveTree(dir) }()
	root := filepath.Join(dir, rootDir)
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	layers, err := from.Layers()
	if err != nil {
		return fmt.Errorf("read the layers of the image: %w", err)
	}
	u, err := newUnpacker(root, s.options.Own)
	if err != nil {
		return err
	}
	defer u.root.Close()
	for i, layer := range layers {
		if err := u.layer(ctx, layer); err != nil {
			return fmt.Errorf("unpack layer %d of %d of the image: %w", i+1, len(layers), err)
		}
	}
	image.Size = uint64(u.bytes)
	if err := shim.WriteJSON(filepath.Join(dir, imageFile), image); err != nil {
		return err
	}
	return os.Rename(dir, s.path(image.ID))
}

// rename gives the image of that ID the names, and takes the tags from any other.
func (s *Store) rename(names Image) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := s.images[names.ID]
	if image == nil {
		return Image{}, false
	}
	for _, tag := range names.Tags {
		for _, other := range s.images {
			other.Tags = slices.DeleteFunc(other.Tags, func(t string) bool { return t == tag })
		}
		image.Tags = append(image.Tags, tag)
	}
	for _, digest := range names.Digests {
		if !slices.Contains(image.Digests, digest) {
			image.Digests = append(image.Digests, digest)
		}
	}
	image.Source = names.Source
	return image.clone(), true
}

func (s *Store) save(image Image) error {
	return shim.WriteJSON(filepath.Join(s.path(image.ID), imageFile), image)
}

// RemoveTree removes dir and all that is in it, also directories that nobody may enter.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // it is about to be removed
		}
		return nil
	})
	return os.RemoveAll(dir)
}
