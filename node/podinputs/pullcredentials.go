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
	// PullCredentials returns what the imagePullSecrets of the pod have, and of nothing else,
	// those for longer names of registries first: the first that Matches an image is the one to
	// try first. Of the pod only namespace, name and UID count; one that is not this node's, or has
	// ended, is an error of the kind not-found.
	//
	// A Secret that does not exist, or has another form, is left out, with a
	// warning event about the pod, as in a kubelet. One that cannot be read now is an error.
	PullCredentials(ctx context.Context, pod *corev1.Pod) ([]RegistryCredential, error)
}

// RegistryCredential is how to log in at a registry. Formatting and JSON leave what is secret out.
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
