// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodTokens gives tokens for pods of this node. It can be used from any goroutine.
type PodTokens interface {
	// Token returns the token for a source of a projected volume. Of the pod only namespace, name and UID count.
	// A source that no volume of the pod has is an error of the kind invalid-input. A pod of another node, or an
	// ended pod, is an error of the kind not-found.
	//
	// A token is kept until 80 % of its life or a day has passed. The next call then replaces it: a provider
	// with up-to-date files asks at RefreshAt. While the API server does not answer, Token returns the old token
	// for as long as it is valid.
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
