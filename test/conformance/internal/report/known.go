// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"strings"
)

// Known are the reasons of tests that are known not to pass, by a part of their names.
type Known map[string]string

// ReadKnown reads a file of lines NAME<tab>REASON, in which lines that begin with # say nothing.
func ReadKnown(file string) (Known, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the reasons: %w", err)
	}
	known := Known{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, found := strings.Cut(line, "\t")
		if !found {
			return nil, fmt.Errorf("read the reasons in %s: %q has no tab", file, line)
		}
		known[name] = strings.TrimSpace(reason)
	}
	return known, nil
}

// part is the part of a test's name for which there is a reason; "" when nobody knows one.
func (k Known) part(name string) string {
	for part := range k {
		if strings.Contains(name, part) {
			return part
		}
	}
	return ""
}
