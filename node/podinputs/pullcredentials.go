// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/imagematch"
)

// PullCredentials gives the credentials to pull images of pods with. It can be used from
// any goroutine.
type PullCredentials interface {
	// PullCredentials returns the credentials from the imagePullSecrets of the pod, and no others. Longer names
	// of registries come first: try the first credential that Matches an image first. Of the pod only namespace,
	// name and UID count. A pod of another node, or an ended pod, is an error of the kind not-found.
	//
	// A Secret that does not exist, or has another form, is left out, with a warning event about the pod, as in
	// a kubelet. A Secret that cannot be read now is an error.
	PullCredentials(ctx context.Context, pod *corev1.Pod) ([]RegistryCredential, error)
}

// RegistryCredential is a login for a registry. Formatting and JSON leave secret values out.
type RegistryCredential struct {
	// Registry is the name as the Secret has it: a host, with a scheme, port or path perhaps,
	// such as https://index.docker.io/v1/ or *.registry.example:5000/team.
	Registry string
	Username string
	Password string `json:"-"`
	// IdentityToken and RegistryToken are used instead of a password by some registries.
	IdentityToken string `json:"-"`
	RegistryToken string `json:"-"`
}

// String names user and registry.
func (r RegistryCredential) String() string {
	return fmt.Sprintf("user %q at %q", r.Username, r.Registry)
}

// GoString is String.
func (r RegistryCredential) GoString() string { return r.String() }

// Matches reports whether the credential is for the registry of an image, by the rules of a kubelet:
// each part of the host may have wildcards, the port is the same, and the
// path is the beginning of the image's.
func (r RegistryCredential) Matches(image string) bool {
	return imagematch.Matches(r.Registry, image)
}
