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

// requestTimeout is the timeout of a request other than a stream.
const requestTimeout = 30 * time.Second

// classifyError sets the errdefs kind of an error of the remote API server, for a request about an existing pod.
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

// createKind is classifyError for a create. There, not-found is about the namespace, and temporary.
func createKind(err error) error {
	if apierrors.IsInvalid(err) {
		return errdefs.AsInvalidInput(err)
	}
	return withDelay(err)
}

// noAnswer reports whether an error means that the server is currently unavailable, so that other requests would
// fail, too. It returns false for errors about the request, including the error 500 for a webhook that does not
// answer, because webhooks may be for one namespace or kind.
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

// withDelay adds the retry delay to the error, if the API server suggested one.
func withDelay(err error) error {
	if seconds, says := apierrors.SuggestsClientDelay(err); says && seconds > 0 {
		return errdefs.RetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return err
}
