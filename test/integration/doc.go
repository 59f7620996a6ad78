// SPDX-License-Identifier: Apache-2.0

// Package integration tests whole nodes against a real API server.
//
// Each test has a namespace and a node of its own, a backend in memory or the mock provider behind the
// real program, and a record of the requests that its node makes. It waits on watches, and
// on calls of the backend; it never sleeps.
//
// What surprises: tests run in parallel on one cluster. Workloads that a scheduler
// places name their node, or they would land on that of another test.
package integration
