// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
)

// The table stands between these lines of a file.
const (
	intoBegin = "<!-- begin of the sample: written by -into -->\n"
	intoEnd   = "<!-- end of the sample -->\n"
)

// insert writes the table into the file, in place of the one between the markers.
func (r *report) insert(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the file for the table: %w", err)
	}
	var table bytes.Buffer
	if err := r.printTable(&table); err != nil {
		return err
	}
	text, err = between(text, table.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the file for the table: %w", err)
	}
	return nil
}

// between puts a code block between the markers of text.
func between(text, block []byte) ([]byte, error) {
	before, rest, hasBegin := bytes.Cut(text, []byte(intoBegin))
	_, after, hasEnd := bytes.Cut(rest, []byte(intoEnd))
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("there is no place for the table: the lines %q and %q are missing", intoBegin, intoEnd)
	}
	return bytes.Join([][]byte{before, []byte(intoBegin), []byte("\n```\n"), block, []byte("```\n\n"), []byte(intoEnd), after}, nil), nil
}
