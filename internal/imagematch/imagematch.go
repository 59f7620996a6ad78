// SPDX-License-Identifier: Apache-2.0

// Package imagematch finds the credentials for an image.
//
// The guarantee: the rules are those of a kubelet.
//
// Note: an image without a registry is at Docker Hub, which has several names.
package imagematch

import (
	"net"
	"path"
	"strings"
)

// hub is the registry for images without a registry.
const hub = "index.docker.io"

var hubNames = map[string]bool{"docker.io": true, hub: true, "registry-1.docker.io": true}

// Matches reports whether the credentials for a registry in a Docker configuration apply to an image: each part of the host may have wildcards, the
// port must be the same, and the path must be a prefix of the image's path.
func Matches(registry, image string) bool {
	host, port, dir := splitRegistry(registry)
	imageHost, imagePort, name := placeOfImage(image)
	if port != imagePort || dir != "" && name != dir && !strings.HasPrefix(name, dir+"/") {
		return false
	}
	parts, imageParts := strings.Split(host, "."), strings.Split(imageHost, ".")
	if len(parts) != len(imageParts) {
		return false
	}
	for i := range parts {
		if ok, err := path.Match(parts[i], imageParts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// splitRegistry splits the name of a registry. The path of a version of the registry's own API is ignored.
func splitRegistry(registry string) (host, port, dir string) {
	if _, after, ok := strings.Cut(registry, "://"); ok {
		registry = after
	}
	address, dir, _ := strings.Cut(registry, "/")
	dir = strings.Trim(dir, "/")
	for _, version := range []string{"v1", "v2"} {
		if dir == version || strings.HasPrefix(dir, version+"/") {
			dir = strings.TrimPrefix(dir[len(version):], "/")
			break
		}
	}
	host, port = hostPort(address)
	return host, port, dir
}

// placeOfImage splits the name of an image, and drops its tag and digest.
func placeOfImage(image string) (host, port, name string) {
	image, _, _ = strings.Cut(image, "@")
	first, rest, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(first, ".:") && first != "localhost" {
		first, rest = hub, image
		if !found {
			rest = "library/" + image
		}
	}
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, '/') {
		rest = rest[:colon]
	}
	host, port = hostPort(first)
	return host, port, rest
}

func hostPort(address string) (host, port string) {
	if h, p, err := net.SplitHostPort(address); err == nil {
		address, port = h, p
	}
	address = strings.ToLower(address)
	if hubNames[address] {
		address = hub
	}
	return address, port
}
