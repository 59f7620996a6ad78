// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// kind gives an error of the remote API server the kind that the node acts on, in a request for a pod that is there.
func kind(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		return errdefs.AsNotFound(err)
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return errdefs.AsInvalidInput(err)
	}
	return later(err)
}

// createKind is kind for a create: what is not found there is the namespace, which passes.
func createKind(err error) error {
	if apierrors.IsInvalid(err) {
		return errdefs.AsInvalidInput(err)
	}
	return later(err)
}

// later says when to try again, if the API server said so.
func later(err error) error {
	if seconds, says := apierrors.SuggestsClientDelay(err); says && seconds > 0 {
		return errdefs.RetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return err
}
