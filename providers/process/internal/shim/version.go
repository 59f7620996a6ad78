// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
)

// build is what this binary was built of, which the linker sets: a daemon and its shims are of one version.
var build string

// protocol is another one when what a daemon and its shims tell each other means something else, and looks the same.
var protocol = 1

// version is what a daemon and the program of its shims must have in common: what they were built of and, as all trees with changes
// that are not committed have one name, what they tell each other. "" is that of a binary of which nobody knows what it was built of.
func version() string {
	if build == "" {
		return ""
	}
	sum := fnv.New32a()
	for _, t := range []reflect.Type{reflect.TypeFor[Spec](), reflect.TypeFor[State](), reflect.TypeFor[request](), reflect.TypeFor[done](), reflect.TypeFor[Size]()} {
		shape(sum, t)
	}
	return fmt.Sprintf("%s (protocol %d.%08x)", build, protocol, sum.Sum32())
}

// shape writes what a type looks like in a message.
func shape(w io.Writer, t reflect.Type) {
	fmt.Fprint(w, t.Kind(), " ")
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		shape(w, t.Elem())
	case reflect.Map:
		shape(w, t.Key())
		shape(w, t.Elem())
	case reflect.Struct:
		fmt.Fprint(w, t.Name(), "{")
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				fmt.Fprint(w, f.Name, " ", f.Tag, " ")
				shape(w, f.Type)
			}
		}
		fmt.Fprint(w, "}")
	}
}
