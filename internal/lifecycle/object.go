// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
)

// object builds a JSON object field by field, in the order of the calls.
type object struct{ buf []byte }

func (o *object) any() bool { return len(o.buf) > 0 }

func (o *object) name(name string) {
	if len(o.buf) == 0 {
		o.buf = append(make([]byte, 0, 512), '{', '"')
	} else {
		o.buf = append(o.buf, ',', '"')
	}
	o.buf = append(o.buf, name...)
	o.buf = append(o.buf, '"', ':')
}

// raw sets a field to a value that is already JSON.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.buf = append(o.buf, value...)
}

// set sets a field. Parts of a pod can always be marshaled.
func (o *object) set(name string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%s of a pod does not marshal: %v", name, err))
	}
	o.raw(name, b)
}

// setOrDrop sets a field, or makes the patch remove it.
func (o *object) setOrDrop(name string, value any, drop bool) {
	if drop {
		value = nil
	}
	o.set(name, value)
}

// text sets a field to a string.
func (o *object) text(name, value string) {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			o.set(name, value)
			return
		}
	}
	o.name(name)
	o.buf = append(o.buf, '"')
	o.buf = append(o.buf, value...)
	o.buf = append(o.buf, '"')
}

func (o *object) end() []byte {
	if len(o.buf) == 0 {
		return []byte("{}")
	}
	return append(o.buf, '}')
}
