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

// NotFound answers 404 to a request without a route.
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

// errCut is returned after a part of the answer was written and the failure was logged. The connection is cut,
// so that the client does not take the part for the whole.
var errCut = errors.New("the answer is cut short")

// handlerFunc is a handler whose caller answers with the returned error. It may return an error other than
// errCut only while no part of the answer was written.
type handlerFunc func(w http.ResponseWriter, req *http.Request) error

// answerErrors turns the error of h into a plain text answer, by its kind,
// and a panic into 500.
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

// errPanic stands for a panic of the provider. The value of the panic stays
// out of the message, because the message reaches the client.
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
