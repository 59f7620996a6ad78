// SPDX-License-Identifier: Apache-2.0

// Package errdefs defines the kinds of errors from providers for the controllers and the HTTP server.
//
// A kind is a method, not a type: any error with a method NotFound() bool or InvalidInput() bool belongs to that kind if the method returns true, so
// providers can use their own error types. The kind survives wrapping with %w, errors.Join and the older Cause() error convention.
//
// Note: the outermost error with the method decides. An error whose NotFound returns false hides a NotFound below it.
package errdefs

// kindError gives an error a kind without changing its message.
type kindError struct{ error }

// Cause returns the error below the kind.
func (e kindError) Cause() error { return e.error }

// Unwrap returns the error below the kind.
func (e kindError) Unwrap() error { return e.error }

// findKind reports whether an error in the tree of err has the method of kind T, and returns the answer of the first such error in depth-first order.
// It follows both conventions of wrapping: Unwrap (single and multiple) and Cause.
func findKind[T error](err error, answer func(T) bool) bool {
	found, yes := searchTree(err, answer)
	return found && yes
}

func searchTree[T error](err error, answer func(T) bool) (found, yes bool) {
	for err != nil {
		if k, ok := err.(T); ok {
			return true, answer(k)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Cause() error }:
			err = e.Cause()
		case interface{ Unwrap() []error }:
			for _, branch := range e.Unwrap() {
				if f, y := searchTree(branch, answer); f {
					found, yes = true, yes || y
				}
			}
			return found, yes
		default:
			return false, false
		}
	}
	return false, false
}
