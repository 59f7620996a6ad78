// SPDX-License-Identifier: Apache-2.0

package opencensus

import (
	"fmt"
	"reflect"

	octrace "go.opencensus.io/trace"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

func spanAttributes(fields log.Fields) []octrace.Attribute {
	attrs := make([]octrace.Attribute, 0, len(fields)+1)
	for key, value := range fields {
		attrs = append(attrs, spanAttribute(key, value))
	}
	return attrs
}

// spanAttribute returns an attribute. Numbers and booleans keep their type. Everything else, and a number outside of int64, is printed as in a log
// line.
func spanAttribute(key string, value any) octrace.Attribute {
	switch value.(type) {
	case error, fmt.Stringer:
		return octrace.StringAttribute(key, fmt.Sprint(value))
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Bool:
		return octrace.BoolAttribute(key, v.Bool())
	case v.CanInt():
		return octrace.Int64Attribute(key, v.Int())
	case v.CanUint() && v.Uint() <= 1<<63-1:
		return octrace.Int64Attribute(key, int64(v.Uint()))
	case v.CanFloat():
		return octrace.Float64Attribute(key, v.Float())
	}
	return octrace.StringAttribute(key, fmt.Sprint(value))
}
