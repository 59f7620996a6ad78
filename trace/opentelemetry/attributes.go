// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

func spanAttributes(fields log.Fields) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, len(fields)+1)
	for key, value := range fields {
		attrs = append(attrs, attribute.KeyValue{Key: attribute.Key(key), Value: attributeValue(value)})
	}
	return attrs
}

// attributeValue returns an attribute value. Numbers and booleans keep their type. Everything else, and a number outside of int64, is printed as in a
// log line.
func attributeValue(value any) attribute.Value {
	switch value.(type) {
	case error, fmt.Stringer:
		return attribute.StringValue(fmt.Sprint(value))
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Bool:
		return attribute.BoolValue(v.Bool())
	case v.CanInt():
		return attribute.Int64Value(v.Int())
	case v.CanUint() && v.Uint() <= 1<<63-1:
		return attribute.Int64Value(int64(v.Uint()))
	case v.CanFloat():
		return attribute.Float64Value(v.Float())
	}
	return attribute.StringValue(fmt.Sprint(value))
}
