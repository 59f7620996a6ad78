// SPDX-License-Identifier: Apache-2.0

// Package integration tests whole nodes against a real API server.
//
// Each test has a namespace and a node of its own, a backend in memory or the mock provider behind the real
// program, and a record of its node's requests. It waits on watches, and on calls of the backend; it never
// sleeps.
//
// Note: tests run in parallel on one cluster. Scheduled workloads name their node, or their pods could
// get to the node of another test.
package integration
