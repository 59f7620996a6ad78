// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"net/url"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

// CheckMirror checks that mirror is a valid URL of a registry mirror.
func CheckMirror(mirror string) error {
	u, err := url.Parse(mirror)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || (u.Path != "" && u.Path != "/") {
		return fmt.Errorf("mirror %q: want http:// or https:// with a host and nothing after it", mirror)
	}
	return nil
}

// mirrorOf returns the name of the image in the mirror of its registry, or nil without a mirror.
func (s *Store) mirrorOf(ref name.Reference) (name.Reference, error) {
	registry := ref.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io"
	}
	mirror, ok := s.options.Mirrors[registry]
	if !ok {
		return nil, nil //nolint:nilnil // no mirror is no error
	}
	u, err := url.Parse(mirror)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", registry, err)
	}
	separator := ":"
	if _, ok := ref.(name.Digest); ok {
		separator = "@"
	}
	var options []name.Option
	if u.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	there, err := imageref.Parse(u.Host+"/"+ref.Context().RepositoryStr()+separator+ref.Identifier(), options...)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", registry, err)
	}
	return there, nil
}
