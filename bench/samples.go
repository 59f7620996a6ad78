// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// The table is between these lines of a file.
const (
	intoBegin = "<!-- begin of the sample: written by -into -->\n"
	intoEnd   = "<!-- end of the sample -->\n"
)

// The sample of scenarios with containers is between these lines.
const (
	startsBegin = "<!-- begin of the sample with containers: written by -into -->\n"
	startsEnd   = "<!-- end of the sample with containers -->\n"
)

// The sample of a provider over the wire is between these lines.
const (
	wireBegin = "<!-- begin of the sample over the wire: written by -into -->\n"
	wireEnd   = "<!-- end of the sample over the wire -->\n"
)

// The sample of a second cluster is between these lines.
const (
	remoteBegin = "<!-- begin of the sample of a second cluster: written by -into -->\n"
	remoteEnd   = "<!-- end of the sample of a second cluster -->\n"
)

// The sample of runtimes is between these lines.
const (
	runtimesBegin = "<!-- begin of the sample of runtimes: written by -into -->\n"
	runtimesEnd   = "<!-- end of the sample of runtimes -->\n"
)

// The sample of Liqo is between these lines.
const (
	liqoBegin = "<!-- begin of the sample with Liqo: written by -into -->\n"
	liqoEnd   = "<!-- end of the sample with Liqo -->\n"
)

// Each sample of a scheduler is between its own lines.
const (
	backendBegin = "<!-- begin of the sample at %s: written by -into -->\n"
	backendEnd   = "<!-- end of the sample at %s -->\n"
)

// places has the marker lines around the table of each scenario.
var places = append([]place{
	{func(s scenario) bool { return !s.Containers && !s.Wire && !s.Remote && s.Backend == "" }, intoBegin, intoEnd},
	{func(s scenario) bool { return s.Containers && !s.Runtimes }, startsBegin, startsEnd},
	{func(s scenario) bool { return s.Runtimes }, runtimesBegin, runtimesEnd},
	{func(s scenario) bool { return s.Wire }, wireBegin, wireEnd},
	{func(s scenario) bool { return s.Remote && !s.Liqo }, remoteBegin, remoteEnd},
	{func(s scenario) bool { return s.Liqo }, liqoBegin, liqoEnd},
}, placesOfBackends()...)

type place struct {
	of         func(scenario) bool
	begin, end string
}

func placesOfBackends() (all []place) {
	seen := map[string]bool{}
	for _, s := range scenarios {
		if s.Backend != "" && !seen[s.Backend] {
			seen[s.Backend] = true
			name := backendNames[s.Backend]
			all = append(all, place{func(other scenario) bool { return other.Backend == s.Backend }, fmt.Sprintf(backendBegin, name), fmt.Sprintf(backendEnd, name)})
		}
	}
	return all
}

// insertInto writes the table into the file, and replaces the table between the markers.
func (r *report) insertInto(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the file for the table: %w", err)
	}
	for _, part := range places {
		some := *r
		some.Scenarios = slices.DeleteFunc(slices.Clone(r.Scenarios), func(o outcome) bool { return !part.of(o.scenario) })
		if len(some.Scenarios) == 0 {
			continue
		}
		var table bytes.Buffer
		if err := some.printTable(&table); err != nil {
			return err
		}
		if text, err = insertBlock(text, table.Bytes(), part.begin, part.end); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the file for the table: %w", err)
	}
	return nil
}

// insertBlock puts a code block between the markers of text.
func insertBlock(text, block []byte, begin, end string) ([]byte, error) {
	before, rest, hasBegin := bytes.Cut(text, []byte(begin))
	_, after, hasEnd := bytes.Cut(rest, []byte(end))
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("there is no place for the table: the lines %q and %q are missing", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte("\n```\n"), block, []byte("```\n\n"), []byte(end), after}, nil), nil
}
