// SPDX-License-Identifier: Apache-2.0

// Package stackpath is a test server for the API of StackPath Edge Compute, with its login and its console.
//
// The guarantee: a request is refused if the description of the service forbids it. fields.json has the
// operations, the fields and the lists of values, from the description that the vendor published, with the date.
//
// Note: the service closed in 2024, so everything outside the description is our choice: the codes of
// refusals, the answer to a slug that is taken, how the console splits a command into words, and when a deleted
// workload disappears.
package stackpath
