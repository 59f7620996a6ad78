// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"golang.org/x/sync/errgroup"
)

// wasPulled reports whether the store has the image with the ID and all digests of names: every layer was then
// pulled from this repository and manifest.
func (s *Store) wasPulled(names Image) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := s.images[names.ID]
	return image != nil && !slices.ContainsFunc(names.Digests, func(digest string) bool { return !slices.Contains(image.Digests, digest) })
}

// askFor returns an error unless the credentials of this pull have access to every layer. It fetches no layer.
func askFor(ctx context.Context, layers []v1.Layer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, l := range layers {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if err := askForOne(l); err != nil {
				return fmt.Errorf("ask for layer %d of %d of the image: %w", i+1, len(layers), err)
			}
			resetWatchdog(ctx)
			return nil
		})
	}
	return group.Wait()
}

// askForOne checks access to the layer with a HEAD request. If that fails, it reads the first byte of the layer,
// which may be at another address.
func askForOne(l v1.Layer) error {
	if exists, err := partial.Exists(l); exists && err == nil {
		return nil
	}
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 1))
	return err
}
