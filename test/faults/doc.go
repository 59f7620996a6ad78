// SPDX-License-Identifier: Apache-2.0

// Package faults holds tests with faults against a real API server: what a node
// must survive, row by row of the fault matrix, and that the API server in memory,
// on which other tests stand, behaves as the real one.
//
// The guarantee: without an API server the tests are skipped, never passed.
//
// What surprises: time budgets are loose but for `make faults`.
package faults
