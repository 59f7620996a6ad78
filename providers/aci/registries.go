// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// httpsPort is how the name of a registry ends that names the port which it has anyway. ACI takes no name with a port.
const httpsPort = ":443"

// imageOf returns an image as ACI gets it.
func imageOf(image string) string {
	host, path, found := strings.Cut(image, "/")
	if !found {
		return image
	}
	return strings.TrimSuffix(host, httpsPort) + "/" + path
}

// registries returns the logins that the images of the pod need: ACI refuses more logins than containers, two for one registry, and those
// for a registry with a port.
func (r resolved) registries(spec *field.Path) (out []*aci.ImageRegistryCredential, err error) {
	for _, list := range []struct {
		at         *field.Path
		containers []corev1.Container
	}{{spec.Child("initContainers"), r.pod.Spec.InitContainers}, {spec.Child("containers"), r.pod.Spec.Containers}} {
		for i := range list.containers {
			if out, err = r.addLogin(out, list.containers[i].Image, list.at.Index(i).Child("image")); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// addLogin adds the login for an image, if there is one.
func (r resolved) addLogin(to []*aci.ImageRegistryCredential, image string, at *field.Path) ([]*aci.ImageRegistryCredential, error) {
	n := slices.IndexFunc(r.credentials, func(c node.RegistryCredential) bool { return c.Username != "" && c.Matches(image) })
	if n < 0 {
		return to, nil
	}
	c := r.credentials[n]
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil, errdefs.InvalidInputf("%s: %q: %v", at, image, err)
	}
	server := strings.TrimSuffix(ref.Context().RegistryStr(), httpsPort)
	if strings.Contains(server, ":") {
		return nil, errdefs.InvalidInputf("%s: ACI logs in at no registry with a port, such as %s: let it answer at port 443, or take it out of imagePullSecrets if its images are public", at, server)
	}
	for _, had := range to {
		if *had.Server != server {
			continue
		}
		if *had.Username != c.Username || *had.Password != c.Password {
			return nil, errdefs.InvalidInputf("%s: ACI has one login for a registry, and the images of the pod need two for %s: use one that may read all", at, server)
		}
		return to, nil
	}
	return append(to, &aci.ImageRegistryCredential{Server: &server, Username: &c.Username, Password: &c.Password}), nil
}
