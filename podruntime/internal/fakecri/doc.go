// SPDX-License-Identifier: Apache-2.0

// Package fakecri is a container runtime in memory, for tests: it implements the Go interfaces of the Container Runtime Interface without running
// anything.
//
// The guarantee: sandboxes, containers and images have the same state transitions as in a real runtime. Errors are gRPC statuses. A Life defines the
// behaviour of a container. Logs are real files in CRI format. No code waits on a mutex or starts a goroutine, so the package works in
// the bubbles of testing/synctest.
//
// Note: it is strict where runtimes differ. To stop a missing container is an error. The directory of a log must exist before the container
// starts. Lists are unordered. A stopped sandbox loses its address.
//
// providertest/inprocess does not replace this package: it accepts whole pods, and restarts and probes their containers itself, which is the work of
// podruntime under test. This package does not replace inprocess either: it runs no programs, and the library cannot import the module podruntime.
package fakecri
