// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// DetailKey is the key of the ErrorDetail in the trailing metadata.
const DetailKey = "virtualkubelet-error-bin"

// Detail returns the kinds of err.
func Detail(err error) *rpc.ErrorDetail {
	after, _ := errdefs.RetryAfterOf(err)
	return &rpc.ErrorDetail{
		NotFound: errdefs.IsNotFound(err), InvalidInput: errdefs.IsInvalidInput(err), RetryAfterMillis: after.Milliseconds(),
	}
}

// Encode returns err as a gRPC error, with its trailing metadata, which is nil if the code is sufficient.
// complete means for a not-found error that the plugin knew all pods. Encode of nil returns nil.
func Encode(err error, complete bool) (error, metadata.MD) { //nolint:revive,staticcheck // the error is the value here
	if err == nil {
		return nil, nil
	}
	detail := Detail(err)
	detail.Complete = complete && detail.GetNotFound()
	code := codes.Unknown
	var own interface{ GRPCStatus() *status.Status }
	switch {
	case detail.GetNotFound():
		code = codes.NotFound
	case detail.GetInvalidInput():
		code = codes.InvalidArgument
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.As(err, &own) && own.GRPCStatus().Code() == codes.Unimplemented:
		code = codes.Unimplemented
	}
	encoded, _ := proto.Marshal(detail) // fails only for strings that are not UTF-8, and there are none
	if len(encoded) == 0 || !detail.GetComplete() && detail.GetRetryAfterMillis() == 0 && !(detail.GetNotFound() && detail.GetInvalidInput()) {
		return status.Error(code, err.Error()), nil
	}
	return status.Error(code, err.Error()), metadata.Pairs(DetailKey, string(encoded))
}

// Decode returns the error of a call with its kind. For a not-found error, it also returns whether the plugin
// knew all pods. ctx is the context of the call. Decode of nil returns nil.
func Decode(ctx context.Context, err error, trailer metadata.MD) (kind error, complete bool) { //nolint:revive // the error is the value here
	if err == nil {
		return nil, false
	}
	s, ok := status.FromError(err)
	if !ok {
		return err, false
	}
	detail := &rpc.ErrorDetail{}
	if v := trailer.Get(DetailKey); len(v) == 1 && proto.Unmarshal([]byte(v[0]), detail) != nil {
		detail = &rpc.ErrorDetail{}
	}
	detail.NotFound = detail.GetNotFound() || s.Code() == codes.NotFound
	detail.InvalidInput = detail.GetInvalidInput() || s.Code() == codes.InvalidArgument
	message := errors.New(s.Message())
	switch s.Code() {
	case codes.DeadlineExceeded:
		message = kept{s.Message(), context.DeadlineExceeded}
	case codes.Canceled:
		message = kept{s.Message(), context.Canceled}
		if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil && !errors.Is(cause, context.Canceled) {
			message = cause
		}
	case codes.ResourceExhausted:
		message = fmt.Errorf("%s: raise the limit on both sides, maxMessageBytes of provider plugin and MaxMessageBytes of the plugin", s.Message())
	case codes.Unavailable:
		message = fmt.Errorf("connection to the plugin: %s", s.Message())
	default:
	}
	return WithDetail(message, detail), detail.GetComplete()
}

// WithDetail adds the kinds in detail to err.
func WithDetail(err error, detail *rpc.ErrorDetail) error {
	if detail.GetNotFound() {
		err = errdefs.AsNotFound(err)
	}
	if detail.GetInvalidInput() {
		err = errdefs.AsInvalidInput(err)
	}
	if after := detail.GetRetryAfterMillis(); after > 0 {
		err = errdefs.RetryAfter(err, time.Duration(after)*time.Millisecond)
	}
	return err
}

// Unimplemented reports whether the error of a call means that the plugin lacks the method.
func Unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// kept is an error with the text of the other side that wraps a local error.
type kept struct {
	message string
	is      error
}

func (k kept) Error() string { return k.message }
func (k kept) Unwrap() error { return k.is }
