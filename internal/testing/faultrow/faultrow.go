// SPDX-License-Identifier: Apache-2.0

// Package faultrow is the matrix of faults for a node to survive: its rows, and the functions for tests to
// record a proven row.
//
// The guarantee: a row's result is the result of its tests. Their measurements are their own text.
//
// Note: time budgets are loose under the race detector, with CI set and in plain `go test`; `make
// faults` holds the row's own figures (Strict).
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
	Target string // the required condition
}

// Rows returns the matrix.
func Rows() []Row { return slices.Clone(rows) }

// Attr is the key of the test attribute with a Result.
const Attr = "fault-row"

// Result is the result of a test for a row.
type Result struct {
	Row      int    `json:"row"`
	Injected string `json:"injected"` // the fault, and how often
	Measured string `json:"measured"` // the result, with figures
}

// Record records the row of the running test's fault, and the measurement. The test's name begins with TestFault
// and the row's number. The row holds if the test passes.
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

// Strict reports whether the exact figures of the matrix apply. They need a machine without other work: `make
// faults` sets VK_FAULTS_STRICT.
func Strict() bool { return os.Getenv("VK_FAULTS_STRICT") != "" && !race }

// Race reports whether the race detector is on. Memory figures are meaningless then.
func Race() bool { return race }

// Budget is the greatest allowed duration of an operation: d when Strict, else six times d and a minute at
// least, because other work on the machine may stop a test for many seconds. A loose budget then finds only
// endless operations. It is for real time only; in a bubble there is no other work.
func Budget(d time.Duration) time.Duration {
	if Strict() {
		return d
	}
	return max(6*d, time.Minute)
}

// Shared reports whether the nodes of test/faults are shared by a group of processes, each node by a group of
// its own (SHARED=1 with `make faults`).
func Shared() bool { return os.Getenv("VK_FAULTS_SHARED") != "" }

// Long reports whether faults last as long as the matrix says (LONG=1 with `make faults`), or are shortened to a
// time with the same effect.
func Long() bool { return os.Getenv("VK_FAULTS_LONG") != "" }
