// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// fields are a request, or a part of a request with names relative to that part.
type fields url.Values

// text, number and is read a field. They return the zero value for a missing field.
func (f fields) text(name string) string { return url.Values(f).Get(name) }

func (f fields) number(name string) float64 {
	n, _ := strconv.ParseFloat(f.text(name), 64) // Check has looked
	return n
}

func (f fields) is(name string) bool { return f.text(name) == "true" }

func (f fields) has(name string) bool { return len(f[name]) > 0 }

// optional returns a number that may be 0, or nil if the field is missing.
func (f fields) optional(name string) *int64 {
	if !f.has(name) {
		return nil
	}
	return new(int64(f.number(name)))
}

// part returns the fields below a name, which may be none.
func (f fields) part(name string) fields {
	out := fields{}
	for key, value := range f {
		if rest, ok := strings.CutPrefix(key, name+"."); ok {
			out[rest] = value
		}
	}
	return out
}

// list returns the items of a list without gaps.
func (f fields) list(name string) (out []fields) {
	for n := 1; ; n++ {
		part := f.part(name + "." + strconv.Itoa(n))
		if len(part) == 0 {
			return out
		}
		out = append(out, part)
	}
}

// texts is a list of values.
func (f fields) texts(name string) (out []string) {
	for n := 1; f.has(name + "." + strconv.Itoa(n)); n++ {
		out = append(out, f.text(name+"."+strconv.Itoa(n)))
	}
	return out
}

// maxRequest is the maximum number of bytes that are read of a request.
const maxRequest = 8 << 20

func readBody(r *http.Request) []byte {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRequest)) // a cut body has another signature
	return body
}
