// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

// addImage adds an image to the store, under these names. Even if the store has a remote image, addImage fetches
// its layers, or checks access to them if they were pulled from the same place: the digest of the configuration
// does not prove that the registry has the layers or grants access to them.
func (s *Store) addImage(ctx context.Context, from v1.Image, names Image, remote bool) (Image, error) {
	config, err := configOf(from)
	if err != nil {
		return Image{}, err
	}
	names.ID, names.Config = config.id, config.Config
	if !remote {
		if image, ok, err := s.renameImage(names); ok {
			return image, err
		}
	}
	layers, err := from.Layers()
	if err != nil {
		return Image{}, fmt.Errorf("read the layers of the image: %w", err)
	}
	if len(layers) != len(config.diffIDs) {
		return Image{}, fmt.Errorf("the image has %d layers, and its configuration says %d", len(layers), len(config.diffIDs))
	}
	if remote && s.wasPulled(names) {
		if err := askFor(ctx, layers); err != nil {
			return Image{}, err
		}
		if image, ok, err := s.renameImage(names); ok {
			return image, err
		}
	}
	dir, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return Image{}, err
	}
	defer func() {
		if RemoveTree(dir) != nil {
			s.addGarbage(dir)
		}
	}()
	limit := s.byteLimit()
	archives := localLayers(layers)
	if remote {
		if archives, err = fetchLayers(ctx, layers, dir, limit); err != nil {
			return Image{}, err
		}
		stopWatchdog(ctx)
	}
	made := filepath.Join(dir, "image")
	if err := s.unpackImage(ctx, archives, config.diffIDs, made, limit, &names); err != nil {
		return Image{}, err
	}
	if err := s.publishImage(made, names); err != nil {
		return Image{}, err
	}
	image, _, err := s.renameImage(names)
	return image, err
}

// config is the configuration of an image.
type config struct {
	v1.Config
	id      string
	diffIDs []string
}

// configOf reads the configuration of the image. The digest of the configuration is the image's ID.
func configOf(from v1.Image) (config, error) {
	fail := func(err error) (config, error) {
		return config{}, fmt.Errorf("read the configuration of the image: %w", err)
	}
	manifest, err := from.Manifest()
	if err != nil {
		return fail(err)
	}
	if manifest.Config.Size > maxConfig || len(manifest.Layers) > maxLayers {
		return fail(fmt.Errorf("it has more than %d bytes, or the image more than %d layers", maxConfig, maxLayers))
	}
	id := manifest.Config.Digest
	raw, err := from.RawConfigFile()
	if err != nil {
		return fail(err)
	}
	if sum := sha256.Sum256(raw); id.String() != "sha256:"+hex.EncodeToString(sum[:]) {
		return fail(fmt.Errorf("it is not %s", id))
	}
	var file v1.ConfigFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return fail(err)
	}
	c := config{Config: file.Config, id: id.String()}
	for _, diffID := range file.RootFS.DiffIDs {
		c.diffIDs = append(c.diffIDs, diffID.String())
	}
	return c, nil
}

// byteLimit returns the current size limit of an image: a part of the disk stays free for running containers.
func (s *Store) byteLimit() int64 {
	free, err := freeBytes(s.dir)
	if err != nil || free > maxBytes {
		return maxBytes
	}
	return int64(free / 10 * 9)
}

// unpackImage creates dir with the files and the record of an image.
func (s *Store) unpackImage(ctx context.Context, layers []layer, diffIDs []string, dir string, limit int64, image *Image) error {
	select {
	case s.unpacking <- struct{}{}:
		defer func() { <-s.unpacking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	root := filepath.Join(dir, rootDir)
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // the root of a container is open to its users
		return err
	}
	u := &unpacker{dir: root, own: s.options.Own, limit: limit}
	for i, open := range layers {
		r, err := open()
		if err == nil {
			err = errors.Join(u.unpackLayer(ctx, r, diffIDs[i]), r.Close())
		}
		if err != nil {
			return fmt.Errorf("unpack layer %d of %d of the image: %w", i+1, len(layers), err)
		}
	}
	image.Size = uint64(u.bytes)
	// The record means that the image is complete, so it must not reach the disk before the files.
	if err := syncFiles(dir); err != nil {
		return err
	}
	return durable.WriteJSON(filepath.Join(dir, imageFile), image)
}

// publishImage moves the image in dir to its final path, unless the store already has it.
func (s *Store) publishImage(dir string, image Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.images[image.ID] != nil {
		return nil
	}
	if err := os.Rename(dir, s.imagePath(image.ID)); err != nil {
		return err
	}
	image.Tags, image.Digests = nil, nil
	s.images[image.ID] = &image
	return durable.SyncDir(s.dir)
}

// renameImage adds the names to the image with the ID, and removes the tags from other images. It returns false
// if the image does not exist.
func (s *Store) renameImage(names Image) (Image, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := s.images[names.ID]
	if image == nil {
		return Image{}, false, nil
	}
	changed := map[string]*Image{image.ID: image}
	for _, tag := range names.Tags {
		for _, other := range s.images {
			if slices.Contains(other.Tags, tag) {
				other.Tags = slices.DeleteFunc(other.Tags, func(t string) bool { return t == tag })
				changed[other.ID] = other
			}
		}
		image.Tags = append(image.Tags, tag)
	}
	for _, digest := range names.Digests {
		if !slices.Contains(image.Digests, digest) {
			image.Digests = append(image.Digests, digest)
		}
	}
	image.Source = names.Source
	var errs []error
	for _, i := range changed {
		errs = append(errs, durable.WriteJSON(filepath.Join(s.imagePath(i.ID), imageFile), i))
	}
	return image.cloneImage(), true, errors.Join(errs...)
}
