// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Parts of an image name: [host[:port]/]path[:tag][@digest].
var (
	pathPattern   = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	hostPattern   = regexp.MustCompile(`^(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?)(?::[0-9]+)?$`)
	tagPattern    = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// errFormat is the error of most invalid names.
var errFormat = errors.New("invalid reference format")

// Normalize returns the name with the tag latest, if it has neither a tag nor a digest. An impossible name is an
// error.
func Normalize(image string) (string, error) {
	rest, digest, hasDigest := strings.Cut(image, "@")
	tag, hasTag := "", false
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest, tag, hasTag = rest[:colon], rest[colon+1:], true
	}
	path := rest
	if host, after, has := strings.Cut(rest, "/"); has && isHost(host) {
		if !hostPattern.MatchString(host) {
			return "", fmt.Errorf("couldn't parse image name %q: %w", image, errFormat)
		}
		path = after
	}
	switch {
	case hasTag && !tagPattern.MatchString(tag), hasDigest && !digestPattern.MatchString(digest):
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, errFormat)
	case pathPattern.MatchString(strings.ToLower(path)) && path != strings.ToLower(path):
		return "", fmt.Errorf("couldn't parse image name %q: %w: repository name (%s) must be lowercase", image, errFormat, path)
	case !pathPattern.MatchString(path) || len(path) > 255:
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, errFormat)
	case hasTag || hasDigest:
		return image, nil
	}
	return image + ":latest", nil
}

// isHost reports whether the first part of a name is a registry, not part of the path.
func isHost(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost" || part != strings.ToLower(part)
}
