// SPDX-License-Identifier: Apache-2.0

// Package jsonobject builds the JSON of requests to services without a client in Go.
//
// The guarantee: the same values give the same text, because names are sorted.
//
// Note: WithoutEmpty also leaves out false and 0. A field that must be sent with such a value gets a pointer to it.
package jsonobject

import (
	"maps"
	"reflect"
)

// Object is a JSON object: the names of the service, and values.
type Object map[string]any

// WithoutEmpty removes zero and empty values from o, and returns o. A pointer to zero stays.
func (o Object) WithoutEmpty() Object {
	maps.DeleteFunc(o, func(_ string, value any) bool {
		v := reflect.ValueOf(value)
		return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	})
	return o
}
