// SPDX-License-Identifier: Apache-2.0

// Package jsonlist reads the pages of lists of services, item by item.
//
// The guarantee: the memory for a page is that of its largest item. A page that ends early is an error.
//
// Note: before an error, the caller has already received some items of the page.
package jsonlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// errForm is the error of a response in an unexpected format. It replaces the decoder's error, which could quote a secret.
var errForm = errors.New("the answer is no JSON of the documentation")

// Read reads a JSON object. It calls take with each item of the fields in lists, and decodes every other field into rest by
// its name.
func Read[T any](r io.Reader, lists []string, take func(T), rest map[string]any) error {
	in := &reader{r: r}
	err := readObject(json.NewDecoder(in), lists, take, rest)
	if err != nil && in.err != nil { // the response is incomplete
		return fmt.Errorf("read the answer: %w", in.err)
	}
	return err
}

// reader keeps the first read error, because it explains why a response is incomplete.
type reader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF && r.err == nil {
		r.err = err
	}
	return n, err
}

func readObject[T any](d *json.Decoder, lists []string, take func(T), rest map[string]any) error {
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return errForm
		}
		name, _ := token.(string)
		if slices.Contains(lists, name) {
			err = readItems(d, take)
		} else {
			into, known := rest[name]
			if !known {
				into = &json.RawMessage{}
			}
			err = d.Decode(into)
		}
		if err != nil {
			return errForm
		}
	}
	return expect(d, json.Delim('}'))
}

// readItems reads an array. Null is an empty array.
func readItems[T any](d *json.Decoder, take func(T)) error {
	token, err := d.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return errForm
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		take(item)
	}
	return expect(d, json.Delim(']'))
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	if token, err := d.Token(); err != nil || token != want {
		return errForm
	}
	return nil
}
