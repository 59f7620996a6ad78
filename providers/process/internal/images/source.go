// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Auth is who pulls; the zero Auth is anybody.
type Auth struct{ Username, Password, IdentityToken, RegistryToken string }

// parse reads the name of an image, as docker does: a name without registry is of docker.io.
func parse(ref string, insecure []string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err == nil && slices.Contains(insecure, parsed.Context().RegistryStr()) {
		parsed, err = name.ParseReference(ref, name.Insecure)
	}
	if err != nil {
		return nil, errdefs.InvalidInput(fmt.Sprintf("image name %q: %v", ref, err))
	}
	return parsed, nil
}

// display is the whole name, as users and other runtimes write it.
func display(ref name.Reference) string {
	full := ref.Name()
	if rest, ok := strings.CutPrefix(full, name.DefaultRegistry); ok {
		return "docker.io" + rest
	}
	return full
}

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// fromRegistry pulls the image.
func (s *Store) fromRegistry(ctx context.Context, ref name.Reference, auth Auth) (Image, error) {
	descriptor, err := s.find(ctx, ref, auth)
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", display(ref), err)
	}
	from, err := descriptor.Image()
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", display(ref), err)
	}
	names := Image{Digests: []string{display(ref.Context().Digest(descriptor.Digest.String()))}}
	if _, ok := ref.(name.Tag); ok {
		names.Tags = []string{display(ref)}
	}
	image, err := s.add(ctx, from, names)
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", display(ref), err)
	}
	return image, nil
}

// find finds the image in the mirror, else in the registry. Whoever runs a mirror does not get the credentials for
// the registry.
func (s *Store) find(ctx context.Context, ref name.Reference, auth Auth) (*remote.Descriptor, error) {
	who := authn.Anonymous
	if auth != (Auth{}) {
		who = authn.FromConfig(authn.AuthConfig{
			Username: auth.Username, Password: auth.Password, IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
		})
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithPlatform(platform())}
	mirror, err := s.mirrorOf(ref)
	if err != nil {
		return nil, err
	}
	if mirror == nil {
		return remote.Get(ref, append(options, remote.WithAuth(who))...)
	}
	found, missed := remote.Get(mirror, options...)
	if missed == nil {
		return found, nil
	}
	found, err = remote.Get(ref, append(options, remote.WithAuth(who))...)
	if err != nil {
		// What the registry says comes first: it decides what kind of error this is.
		return nil, errors.Join(err, fmt.Errorf("the mirror: %w", missed))
	}
	return found, nil
}

// fromDirs takes the image from the first directory that has it.
func (s *Store) fromDirs(ctx context.Context, ref name.Reference) (Image, error) {
	for _, dir := range s.options.Dirs {
		paths, err := candidates(dir)
		if err != nil {
			return Image{}, fmt.Errorf("look for image %s: %w", display(ref), err)
		}
		for _, path := range paths {
			from, err := open(path, ref)
			if errdefs.IsNotFound(err) {
				continue
			}
			if err != nil {
				return Image{}, fmt.Errorf("look for image %s in %s: %w", display(ref), path, err)
			}
			defer from.close()
			names := Image{Source: path}
			if _, ok := ref.(name.Tag); ok {
				names.Tags = []string{display(ref)}
			}
			if digest, err := from.Digest(); err == nil {
				names.Digests = []string{display(ref.Context().Digest(digest.String()))}
			}
			image, err := s.add(ctx, from.Image, names)
			if err != nil {
				return Image{}, fmt.Errorf("image %s of %s: %w", display(ref), path, err)
			}
			return image, nil
		}
	}
	return Image{}, errdefs.NotFoundf("image %s is not on this node", display(ref))
}

// candidates are what may be an image in dir, or dir itself.
func candidates(dir string) ([]string, error) {
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

// opened is an image in a file, with what must be thrown away after.
type opened struct {
	v1.Image
	close func()
}

// open finds the image called ref in a layout or an archive.
func open(path string, ref name.Reference) (opened, error) {
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
	dir, err := os.MkdirTemp("", "virtual-kubelet-image-")
	if err != nil {
		return opened{}, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	if err := extract(reader, dir); err != nil {
		remove()
		return opened{}, err
	}
	found, err := openLayout(dir, ref, remove)
	if err != nil {
		remove()
	}
	return found, err
}

// openDocker finds an image in what docker save writes.
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

// openLayout finds an image in an OCI layout, for this kind of machine.
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
		if !named(d, ref) {
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

func named(d v1.Descriptor, ref name.Reference) bool {
	if ref.Identifier() == d.Digest.String() {
		return true
	}
	for _, a := range nameAnnotations {
		value := d.Annotations[a]
		if parsed, err := name.ParseReference(value); value != "" && err == nil && parsed.Name() == ref.Name() {
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
		if d.Platform != nil && d.Platform.Satisfies(platform()) {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("the image is not made for %s", platform())
}

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

// extract writes the files of an archive, and nothing but files.
func extract(reader tarball.Opener, dir string) error {
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
