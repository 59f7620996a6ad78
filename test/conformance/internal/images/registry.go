// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const architecture = runtime.GOARCH

// Serve serves the images at address, as a mirror of [Registry], until ctx is done. It returns when the
// registry has all of them.
func Serve(ctx context.Context, address string, all map[string]v1.Image) error {
	listener, err := net.Listen("tcp", address) //nolint:noctx // a bind on this machine does not block
	if err != nil {
		return fmt.Errorf("listen for the registry: %w", err)
	}
	server := &http.Server{
		Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // it ends when ctx ends

	push := map[name.Reference]remote.Taggable{}
	for tag, image := range all {
		ref, err := name.ParseReference(address+"/"+tag, name.Insecure)
		if err != nil {
			return fmt.Errorf("name the image %s: %w", tag, err)
		}
		push[ref] = image
	}
	if err := remote.MultiWrite(push, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("fill the registry: %w", err)
	}
	return nil
}

// registryFiles adds an image in the layout of agnhost's fake registry: blobs and manifests by digest, and a
// file for the tag with the digest of an index.
func registryFiles(t *tree, dir, tag string, image v1.Image) error {
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
	})
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	t.addText(path.Join(dir, "manifests", tag), digest.String()+"\n")
	raw, err := index.RawManifest()
	if err != nil {
		return err
	}
	t.addText(blobPath(path.Join(dir, "manifests"), digest), string(raw))
	if digest, err = image.Digest(); err != nil {
		return err
	}
	if raw, err = image.RawManifest(); err != nil {
		return err
	}
	t.addText(blobPath(path.Join(dir, "manifests"), digest), string(raw))
	if digest, err = image.ConfigName(); err != nil {
		return err
	}
	if raw, err = image.RawConfigFile(); err != nil {
		return err
	}
	t.addText(blobPath(path.Join(dir, "blobs"), digest), string(raw))
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := layerFile(t, path.Join(dir, "blobs"), layer); err != nil {
			return err
		}
	}
	return nil
}

func layerFile(t *tree, dir string, layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	stream, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	var data strings.Builder
	if _, err := io.Copy(&data, stream); err != nil {
		return err
	}
	t.addText(blobPath(dir, digest), data.String())
	return nil
}

func blobPath(dir string, h v1.Hash) string {
	return path.Join(dir, h.Algorithm, h.Hex[:2], h.Hex, "data")
}
