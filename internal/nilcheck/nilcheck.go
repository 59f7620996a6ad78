// SPDX-License-Identifier: Apache-2.0

// Package nilcheck finds what a comparison with nil does not: a nil inside an interface, left by a
// constructor whose error was ignored. It would fail at its first use, far from the mistake.
package nilcheck

import "reflect"

// Is reports whether v is nil, or an interface that holds nil.
func Is(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Interface, reflect.Chan, reflect.Slice:
		return r.IsNil()
	default:
		return false
	}
}
