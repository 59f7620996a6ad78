// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

const (
	// keepEntrypoint is how long the entrypoint of a tag is cached.
	keepEntrypoint = 10 * time.Minute
	// mostEntrypoints is the maximum number of cached entrypoints.
	mostEntrypoints = 1000
)

// entrypoints reads the entrypoints of images from registries. ACI has one list for command and arguments, so
// arguments alone need the entrypoint.
type entrypoints struct {
	transport http.RoundTripper
	known     *cache.LRUExpireCache // by user and image
}

func newEntrypoints(transport http.RoundTripper) *entrypoints {
	return &entrypoints{transport: transport, known: cache.NewLRUExpireCache(mostEntrypoints)}
}

// of returns the entrypoint of an image. An image may have none.
func (e *entrypoints) of(ctx context.Context, image string, credentials []node.RegistryCredential) ([]string, error) {
	who, user := authn.Anonymous, ""
	for _, c := range credentials {
		if c.Matches(image) {
			user = c.Username
			who = authn.FromConfig(authn.AuthConfig{Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken})
			break
		}
	}
	key := user + "@" + image
	if words, ok := e.known.Get(key); ok {
		return words.([]string), nil
	}
	ref, err := imageref.Parse(image)
	if err != nil {
		return nil, errdefs.InvalidInputf("image %q: %v", image, err)
	}
	found, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}),
		remote.WithTransport(withTLS{e.transport}), remote.WithAuth(who))
	if err != nil {
		return nil, fmt.Errorf("read the command of image %s: %w: or write it as command", ref, err)
	}
	config, err := found.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the command of image %s: %w: or write it as command", ref, err)
	}
	e.known.Add(key, config.Config.Entrypoint, keepEntrypoint)
	return config.Config.Entrypoint, nil
}

// withTLS refuses requests without TLS. The client of registries would use plain HTTP for private addresses.
type withTLS struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w withTLS) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not spoken to without TLS", r.URL.Host)
	}
	return w.next.RoundTrip(r)
}

// registries returns the transport for registries: the transport of other requests, with redirects, and with the
// certificate authorities of this machine.
func registries(through *http.Client) http.RoundTripper {
	t, ok := through.Transport.(*http.Transport)
	if !ok {
		return through.Transport
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return t
}

// httpsPort is the suffix of a registry with the default port in its name. ACI accepts no name with a port.
const httpsPort = ":443"

// imageOf returns the name of an image without the default port.
func imageOf(image string) string {
	host, path, found := strings.Cut(image, "/")
	if !found {
		return image
	}
	return strings.TrimSuffix(host, httpsPort) + "/" + path
}

// registryLogins returns the logins for the images of the pod, by the identity of their registry or by a secret
// of the pod. ACI refuses more logins than containers, two logins for one registry, and a login for a registry
// with a port.
func registryLogins(in *service.Inputs, identities map[string]string) (out []*aci.ImageRegistryCredential, err error) {
	err = service.Containers(in.Pod, func(c *corev1.Container, _ bool, at *field.Path) error {
		at = at.Child("image")
		n := slices.IndexFunc(in.Logins, func(l node.RegistryCredential) bool { return l.Username != "" && l.Matches(c.Image) })
		if n < 0 && len(identities) == 0 {
			return nil
		}
		ref, err := imageref.Parse(c.Image)
		if err != nil {
			return errdefs.InvalidInputf("%s: %q: %v", at, c.Image, err)
		}
		server := strings.TrimSuffix(ref.Context().RegistryStr(), httpsPort)
		if id := identities[server]; id != "" {
			if !slices.ContainsFunc(out, func(o *aci.ImageRegistryCredential) bool { return *o.Server == server }) {
				out = append(out, &aci.ImageRegistryCredential{Server: &server, Identity: &id})
			}
			return nil
		}
		if n < 0 {
			return nil
		}
		l := in.Logins[n]
		if strings.Contains(server, ":") {
			return errdefs.InvalidInputf("%s: ACI logs in at no registry with a port, such as %s: let it answer at port 443, or take it out of imagePullSecrets if its images are public", at, server)
		}
		had := slices.IndexFunc(out, func(o *aci.ImageRegistryCredential) bool { return *o.Server == server })
		switch {
		case had < 0:
			out = append(out, &aci.ImageRegistryCredential{Server: &server, Username: &l.Username, Password: &l.Password})
		case *out[had].Username != l.Username || *out[had].Password != l.Password:
			return errdefs.InvalidInputf("%s: ACI has one login for a registry, and the images of the pod need two for %s: use one that may read all", at, server)
		}
		return nil
	})
	return out, err
}
