// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

// Auth are the credentials of a pull; the zero Auth is anonymous.
type Auth struct{ Username, Password, IdentityToken, RegistryToken string }

// parseName parses the name of an image like docker: the default registry is docker.io.
func parseName(ref string, insecure []string) (name.Reference, error) {
	parsed, err := imageref.Parse(ref)
	if err == nil && slices.Contains(insecure, parsed.Context().RegistryStr()) {
		parsed, err = imageref.Parse(ref, name.Insecure)
	}
	if err != nil {
		return nil, errdefs.InvalidInput(fmt.Sprintf("image name %q: %v", ref, err))
	}
	return parsed, nil
}

// displayName returns the full name in the form that users and other runtimes use.
func displayName(ref name.Reference) string {
	full := ref.Name()
	if rest, ok := strings.CutPrefix(full, name.DefaultRegistry); ok {
		return "docker.io" + rest
	}
	return full
}

func imagePlatform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// fromRegistry pulls the image.
func (s *Store) fromRegistry(ctx context.Context, ref name.Reference, auth Auth) (Image, error) {
	done, err := s.turns.takeTurn(ctx, turn{ref: displayName(ref), auth: auth})
	if err != nil {
		return Image{}, err
	}
	defer done()
	ctx, cancel := watchProgress(ctx)
	defer cancel()
	descriptor, err := s.findDescriptor(ctx, ref, auth)
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", displayName(ref), err)
	}
	from, err := descriptor.Image()
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", displayName(ref), err)
	}
	names := Image{Digests: []string{displayName(ref.Context().Digest(descriptor.Digest.String()))}}
	if _, ok := ref.(name.Tag); ok {
		names.Tags = []string{displayName(ref)}
	}
	image, err := s.addImage(ctx, from, names, true)
	if err != nil {
		return Image{}, fmt.Errorf("pull image %s: %w", displayName(ref), err)
	}
	return image, nil
}

// findDescriptor finds the image in the mirror, or else in the registry. The mirror does not get the credentials
// for the registry.
func (s *Store) findDescriptor(ctx context.Context, ref name.Reference, auth Auth) (*remote.Descriptor, error) {
	who := authn.Anonymous
	if auth != (Auth{}) {
		who = authn.FromConfig(authn.AuthConfig{
			Username: auth.Username, Password: auth.Password, IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
		})
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithPlatform(imagePlatform()), remote.WithTransport(s.transport)}
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
		// The registry's error comes first, because it determines the kind of the error.
		return nil, errors.Join(err, fmt.Errorf("the mirror: %w", missed))
	}
	return found, nil
}
