// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// requestTimeout bounds a request other than a stream.
const requestTimeout = 30 * time.Second

// classifyError gives an error of the remote API server its kind for the node, in a request for an existing pod.
func classifyError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		return errdefs.AsNotFound(err)
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return errdefs.AsInvalidInput(err)
	}
	return withDelay(err)
}

// createKind is kind for a create: there, not-found is about the namespace, and passes.
func createKind(err error) error {
	if apierrors.IsInvalid(err) {
		return errdefs.AsInvalidInput(err)
	}
	return withDelay(err)
}

// noAnswer reports whether an error means that the server does not answer, or not now, so another request would
// fare no better. A refusal for a reason of its own is an answer. An error of a webhook for one namespace or
// kind that does not answer is an answer, too: the API server returns 500 for it.
func noAnswer(err error) bool {
	if errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	if code == http.StatusInternalServerError && strings.Contains(status.Status().Message, "failed calling webhook") {
		return false
	}
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// withDelay adds the time for the next try to the error, if the API server named one.
func withDelay(err error) error {
	if seconds, says := apierrors.SuggestsClientDelay(err); says && seconds > 0 {
		return errdefs.RetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return err
}
