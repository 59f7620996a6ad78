// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
)

// build is the build stamp of this binary, set by the linker. A daemon and its shims must have the same version.
var build string

// protocol must be incremented when the meaning of a message between a daemon and its shims changes, but not its
// type.
var protocol = 1

// protocolVersion returns the version that a daemon and its shim program must share: the build stamp, and the
// types of the messages, because all trees with uncommitted changes have the same stamp. It is "" for a binary
// without a build stamp.
func protocolVersion() string {
	if build == "" {
		return ""
	}
	sum := fnv.New32a()
	for _, t := range []reflect.Type{reflect.TypeFor[Spec](), reflect.TypeFor[State](), reflect.TypeFor[request](), reflect.TypeFor[done](), reflect.TypeFor[Size]()} {
		writeShape(sum, t)
	}
	return fmt.Sprintf("%s (protocol %d.%08x)", build, protocol, sum.Sum32())
}

// writeShape writes the structure of a message type.
func writeShape(w io.Writer, t reflect.Type) {
	fmt.Fprint(w, t.Kind(), " ")
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		writeShape(w, t.Elem())
	case reflect.Map:
		writeShape(w, t.Key())
		writeShape(w, t.Elem())
	case reflect.Struct:
		fmt.Fprint(w, t.Name(), "{")
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				fmt.Fprint(w, f.Name, " ", f.Tag, " ")
				writeShape(w, f.Type)
			}
		}
		fmt.Fprint(w, "}")
	}
}
