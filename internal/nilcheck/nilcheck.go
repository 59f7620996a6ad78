// SPDX-License-Identifier: Apache-2.0

// Package nilcheck finds a nil inside an interface, which a comparison with nil does not find. Such a nil results from an ignored error of a
// constructor, and would panic at its first use, far from the mistake.
package nilcheck

import "reflect"

// Is reports whether v is nil, or an interface with a nil value.
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
