// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// reportFaults reads the named files, or in when there are none, and writes the report.
func reportFaults(in io.Reader, out string, files []string) error {
	found := newResults()
	if len(files) == 0 {
		if err := found.read(in); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := found.readFile(name); err != nil {
			return err
		}
	}
	if err := os.WriteFile(out, []byte(found.renderPage()), 0o644); err != nil {
		return err
	}
	if bad := found.unprovenRows(); len(bad) > 0 {
		return fmt.Errorf("not proven: %s", strings.Join(bad, ", "))
	}
	return nil
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Key, Value string
}

// results are the tests with records, by name.
type results struct {
	byTest map[string]*test
	order  []string
}

type test struct {
	name    string
	outcome string // pass, fail, skip, or "" if the test did not end
	results []faultrow.Result
}

func newResults() *results { return &results{byTest: map[string]*test{}} }

func (r *results) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(r.read(f), f.Close())
}

// read reads one run. It skips other lines than events, such as a compiler's.
func (r *results) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			if err := r.addEvent(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *results) addEvent(e event) error {
	name, _, _ := strings.Cut(e.Test, "/")
	if !strings.HasPrefix(name, "TestFault") {
		return nil
	}
	t := r.byTest[name]
	if t == nil {
		t = &test{name: name}
		r.byTest[name] = t
		r.order = append(r.order, name)
	}
	switch e.Action {
	case "run":
		if e.Test == name {
			*t = test{name: name}
		}
	case "attr":
		if e.Key != faultrow.Attr {
			return nil
		}
		var result faultrow.Result
		if err := json.Unmarshal([]byte(e.Value), &result); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.results = append(t.results, result)
	case "pass", "fail", "skip":
		if e.Test == name {
			t.outcome = e.Action
		} else if e.Action != "pass" && t.outcome != "fail" {
			t.outcome = e.Action
		}
	}
	return nil
}
