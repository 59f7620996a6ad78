// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/imagematch"
)

// PullCredentials provides the credentials for pulling the images of pods. It is safe for concurrent use.
type PullCredentials interface {
	// PullCredentials returns the credentials from the imagePullSecrets of the pod, and no others. Longer names of registries come first:
	// try the first credential that Matches an image first. Only the namespace, name and UID of pod are used. For a pod of another node or
	// an ended pod, the error is of the kind not-found.
	//
	// As with a kubelet, a Secret that does not exist or has another format is skipped with a warning event about the pod. If a Secret
	// cannot be read at the moment, it returns an error.
	PullCredentials(ctx context.Context, pod *corev1.Pod) ([]RegistryCredential, error)
}

// RegistryCredential is a login for a registry. Formatting and JSON leave secret values out.
type RegistryCredential struct {
	// Registry is the name in the Secret: a host with an optional scheme, port or path, such as https://index.docker.io/v1/ or
	// *.registry.example:5000/team.
	Registry string
	Username string
	Password string `json:"-"`
	// IdentityToken and RegistryToken replace the password for some registries.
	IdentityToken string `json:"-"`
	RegistryToken string `json:"-"`
}

// String returns the user and the registry.
func (r RegistryCredential) String() string {
	return fmt.Sprintf("user %q at %q", r.Username, r.Registry)
}

// GoString returns the same as String.
func (r RegistryCredential) GoString() string { return r.String() }

// Matches reports whether the credential is for the registry of an image, by the rules of a kubelet: each part of the host may have
// wildcards, the port is the same, and the path is a prefix of the image's path.
func (r RegistryCredential) Matches(image string) bool {
	return imagematch.Matches(r.Registry, image)
}
