// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Known has the reasons of tests known not to pass, by a part of their names.
type Known map[string]string

// ReadKnown reads a file with lines NAME<tab>REASON. Lines with # at the beginning are comments.
func ReadKnown(file string) (Known, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the reasons: %w", err)
	}
	known, err := ParseKnown(string(data))
	if err != nil {
		return nil, fmt.Errorf("read the reasons in %s: %w", file, err)
	}
	return known, nil
}

// ParseKnown parses the text of a file of known failures.
func ParseKnown(text string) (Known, error) {
	known := Known{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, "\t")
		if !found {
			return nil, fmt.Errorf("%q has no tab", line)
		}
		known[name] = strings.TrimSpace(reason)
	}
	return known, nil
}

// Pattern returns a regular expression for the names of the tests.
func (k Known) Pattern() string {
	var parts []string
	for part := range k {
		parts = append(parts, regexp.QuoteMeta(part))
	}
	slices.Sort(parts)
	return strings.Join(parts, "|")
}

// knownPart returns the part of a test's name with a known reason, or "".
func (k Known) knownPart(name string) string {
	for part := range k {
		if strings.Contains(name, part) {
			return part
		}
	}
	return ""
}
