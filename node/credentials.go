// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
)

// PodTokens gives tokens for pods of this node. It can be used from any goroutine.
type PodTokens interface {
	// Token returns the token for a source of a projected volume. Of the pod only namespace,
	// name and UID count; a source that no volume of the pod has is an error of the kind
	// invalid-input, and a pod that is not this node's, or has ended, one of the kind not-found.
	//
	// A token is kept until 80 % of its life or a day has passed, and then replaced when it is
	// asked for again: a provider that keeps a file up to date asks at RefreshAt. While the
	// API server does not answer, the old token is returned for as long as it is
	// valid.
	Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (PodToken, error)
}

// PodToken is a token of the service account of a pod, bound to the pod. Formatting and JSON leave the
// token itself out.
type PodToken struct {
	// Token is the token itself.
	Token string `json:"-"`
	// ExpiresAt is the end of its life, by the API server.
	ExpiresAt time.Time
	// RefreshAt is when to ask for the next one.
	RefreshAt time.Time
}

// String says until when the token lives.
func (t PodToken) String() string { return "token until " + t.ExpiresAt.UTC().Format(time.RFC3339) }

// GoString is String.
func (t PodToken) GoString() string { return t.String() }

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
	return podsecrets.MatchesImage(r.Registry, image)
}

// podTokens is the manager as PodTokens.
type podTokens struct{ manager *podsecrets.Manager }

// Token returns a token.
func (p podTokens) Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (PodToken, error) {
	token, err := p.manager.Token(ctx, pod, source)
	if err != nil {
		return PodToken{}, err
	}
	return PodToken{Token: token.Value, ExpiresAt: token.ExpiresAt, RefreshAt: token.RefreshAt}, nil
}

// pullCredentials is the manager as PullCredentials.
type pullCredentials struct{ manager *podsecrets.Manager }

// PullCredentials returns the credentials.
func (p pullCredentials) PullCredentials(ctx context.Context, pod *corev1.Pod) ([]RegistryCredential, error) {
	logins, err := p.manager.Logins(ctx, pod)
	if err != nil {
		return nil, err
	}
	all := make([]RegistryCredential, 0, len(logins))
	for _, l := range logins {
		all = append(all, RegistryCredential{
			Registry: l.Registry, Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		})
	}
	return all, nil
}
