// SPDX-License-Identifier: Apache-2.0

// Package imageref parses the names of images as container runtimes do.
package imageref

import (
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// oneLetter matches a name whose repository has one letter, such as registry.example:5000/x:1, in its parts.
// Container runtimes accept such names, but name.ParseReference requires two letters.
var oneLetter = regexp.MustCompile(`^(?:([a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]+)?)/)?([a-z0-9])(?::([\w][\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`)

// Parse returns the reference of a name. A name without a registry belongs to docker.io.
func Parse(text string, opts ...name.Option) (name.Reference, error) {
	ref, err := name.ParseReference(text, opts...)
	parts := oneLetter.FindStringSubmatch(text)
	if err == nil || parts == nil || parts[1] != "" && !strings.ContainsAny(parts[1], ".:") {
		return ref, err
	}
	registry, registryErr := name.NewRegistry(parts[1], opts...)
	if registryErr != nil {
		return nil, registryErr
	}
	repository := registry.Repo(parts[2])
	switch {
	case parts[4] != "":
		return repository.Digest(parts[4]), nil
	case parts[3] != "":
		return repository.Tag(parts[3]), nil
	}
	return repository.Tag(name.DefaultTag), nil
}
