// SPDX-License-Identifier: Apache-2.0

// Package faultrow is the matrix of faults that a node must survive: its rows,
// and how a test says which of them it proves.
//
// The guarantee: a row's result is that of the tests that recorded it, and what
// they measured is their own word.
//
// What surprises: time budgets are loose under the race detector, with CI set and
// in plain `go test`; `make faults` holds the row's own figures (Strict).
package faultrow

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// Row is one fault of the matrix.
type Row struct {
	Number int
	Group  string // the part of the system that fails
	Fault  string
	Target string // what must hold
}

// Rows returns the matrix.
func Rows() []Row { return slices.Clone(rows) }

// Attr is the key of the test attribute that carries a Result.
const Attr = "fault-row"

// Result is what a test has to say on a row.
type Result struct {
	Row      int    `json:"row"`
	Injected string `json:"injected"` // what was done, how often
	Measured string `json:"measured"` // what was seen, with figures
}

// Record says that the running test, whose name begins with TestFault and the
// row's number, injected a fault of that row and what it measured. Whether the row
// holds is the test's own result.
func Record(t testing.TB, row int, injected, measured string, args ...any) {
	t.Helper()
	if row < 1 || row > len(rows) {
		t.Fatalf("there is no row %d in the fault matrix", row)
	}
	text, err := json.Marshal(Result{Row: row, Injected: injected, Measured: fmt.Sprintf(measured, args...)})
	if err != nil {
		t.Fatalf("result of row %d: %v", row, err)
	}
	t.Attr(Attr, string(text))
}

// Strict reports whether the figures of the matrix are to be held as they are
// written, which needs a machine without other work: `make faults` sets
// VK_FAULTS_STRICT.
func Strict() bool { return os.Getenv("VK_FAULTS_STRICT") != "" && !race }

// Race reports whether the race detector is on, under which nothing can be said about memory.
func Race() bool { return race }

// Budget is the time that something may take: d when Strict, else six times that and a
// minute at least, because other work on the machine may stop a test for many seconds. What it then
// finds is what never comes. It is for real time only; in a bubble there is no other work.
func Budget(d time.Duration) time.Duration {
	if Strict() {
		return d
	}
	return max(6*d, time.Minute)
}

// Shared reports whether the nodes of test/faults are those that a group of processes shares, each of a group of its own (SHARED=1 with `make faults`).
func Shared() bool { return os.Getenv("VK_FAULTS_SHARED") != "" }

// Long reports whether faults last as long as the matrix says (LONG=1 with `make
// faults`), or are shortened to what shows the same.
func Long() bool { return os.Getenv("VK_FAULTS_LONG") != "" }
