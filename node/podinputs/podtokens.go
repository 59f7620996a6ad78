// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodTokens provides tokens for pods of this node. It is safe for concurrent use.
type PodTokens interface {
	// Token returns the token for a source of a projected volume. Only the namespace, name and UID of pod are used. The error is of the
	// kind invalid-input if no volume of the pod has the source, and of the kind not-found for a pod of another node or an ended pod.
	//
	// A token is cached until 80 % of its lifetime or a day has passed. The next call then replaces it: providers call Token again at
	// RefreshAt to keep their files up to date. While the API server does not answer, Token returns the old token while it is valid.
	Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (PodToken, error)
}

// PodToken is a token of the service account of a pod, bound to the pod. Formatting and JSON leave the
// token itself out.
type PodToken struct {
	// Token is the token itself.
	Token string `json:"-"`
	// ExpiresAt is the end of the token's validity, as set by the API server.
	ExpiresAt time.Time
	// RefreshAt is the time to request the next token.
	RefreshAt time.Time
}

// String returns the end of the token's validity as text.
func (t PodToken) String() string { return "token until " + t.ExpiresAt.UTC().Format(time.RFC3339) }

// GoString returns the same as String.
func (t PodToken) GoString() string { return t.String() }
