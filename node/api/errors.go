// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	calls "github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// NotFound answers 404 to a request that matches no route.
func NotFound(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 request not found", http.StatusNotFound)
}

// NotImplemented answers 501: the provider does not support the operation.
func NotImplemented(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "501 not implemented", http.StatusNotImplemented)
}

func methodNotAllowed(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
}

// errCut is returned if a failure was logged after a part of the response was written. The connection is then closed, so that the client
// does not take the part for the whole.
var errCut = errors.New("the answer is cut short")

// handlerFunc is a handler that returns errors to its caller, which writes the error response. It may return an error other than errCut
// only before any part of the response was written.
type handlerFunc func(w http.ResponseWriter, req *http.Request) error

// answerErrors returns a handler that answers an error of h with plain text and a status by the error's kind, and a panic with 500.
func answerErrors(h handlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		err := recoverPanic(req.Context(), func() error { return h(w, req) })
		if err == nil {
			return
		}
		if errors.Is(err, errCut) {
			panic(http.ErrAbortHandler)
		}
		code := statusCode(err)
		if code == http.StatusInternalServerError {
			log.G(req.Context()).WithError(err).Error("request to the node ends with an error")
		} else {
			log.G(req.Context()).WithError(err).Debug("request to the node is refused")
		}
		http.Error(w, err.Error(), code)
	}
}

func statusCode(err error) int {
	switch {
	case errdefs.IsNotFound(err):
		return http.StatusNotFound
	case errdefs.IsInvalidInput(err):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// errPanic replaces a panic of the provider. The value of the panic stays out of the message, because the message reaches the client.
var errPanic = errors.New("the provider panicked; the log of the node has the details")

// recoverPanic calls f and turns a panic into an error, after logging it. The
// libraries call providers in goroutines of their own, where a panic would
// end the process.
func recoverPanic(ctx context.Context, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			_ = calls.Caught(ctx, "request", v)
			err = errPanic
		}
	}()
	return f()
}
