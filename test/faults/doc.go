// SPDX-License-Identifier: Apache-2.0

// Package faults has tests with faults against a real API server. They prove which faults a node survives, row
// by row of the fault matrix. They also prove that the API server in memory, which other tests use, behaves as
// the real one.
//
// The guarantee: without an API server the tests are skipped, never passed.
//
// Note: time budgets are loose except in `make faults`.
package faults
