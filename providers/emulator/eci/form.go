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

// textOf, numberOf and isTrue read a field. They return the zero value for a missing field.
func (f fields) textOf(name string) string { return url.Values(f).Get(name) }

func (f fields) numberOf(name string) float64 {
	n, _ := strconv.ParseFloat(f.textOf(name), 64) // Check has validated it
	return n
}

func (f fields) isTrue(name string) bool { return f.textOf(name) == "true" }

func (f fields) hasField(name string) bool { return len(f[name]) > 0 }

// optionalNumber returns a number that may be 0, or nil if the field is missing.
func (f fields) optionalNumber(name string) *int64 {
	if !f.hasField(name) {
		return nil
	}
	return new(int64(f.numberOf(name)))
}

// partOf returns the fields below a name, which may be none.
func (f fields) partOf(name string) fields {
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
		part := f.partOf(name + "." + strconv.Itoa(n))
		if len(part) == 0 {
			return out
		}
		out = append(out, part)
	}
}

// textsOf is a list of values.
func (f fields) textsOf(name string) (out []string) {
	for n := 1; f.hasField(name + "." + strconv.Itoa(n)); n++ {
		out = append(out, f.textOf(name+"."+strconv.Itoa(n)))
	}
	return out
}

// maxRequest is the maximum number of bytes that are read of a request.
const maxRequest = 8 << 20

func readBody(r *http.Request) []byte {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRequest)) // a truncated body has another signature
	return body
}
