// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// fieldOf returns the field of a pod at the path of a Need. It panics if the pod has no such field.
func fieldOf(pod *corev1.Pod, path string) reflect.Value {
	v := reflect.ValueOf(pod)
	for name := range strings.SplitSeq(path, ".") {
		name, index, listed := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		v = childOf(v, name)
		if !v.IsValid() {
			panic(fmt.Sprintf("a pod has no field %s", path))
		}
		if listed {
			i, err := strconv.Atoi(index)
			if err != nil {
				panic(fmt.Sprintf("the path %s: %v", path, err))
			}
			v = v.Index(i)
		}
	}
	return v
}

// childOf returns the field with a JSON name in a struct, or in a pointer to a struct, or the zero Value if there is none.
func childOf(v reflect.Value, name string) reflect.Value {
	v = reflect.Indirect(v)
	if !v.IsValid() {
		return v
	}
	var inline []reflect.Value
	for i := range v.NumField() {
		tag, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case tag == name:
			return v.Field(i)
		case tag == "" && options == "inline":
			inline = append(inline, v.Field(i))
		}
	}
	for _, part := range inline {
		if found := childOf(part, name); found.IsValid() {
			return found
		}
	}
	return reflect.Value{}
}
