// SPDX-License-Identifier: Apache-2.0

// Package fakecri is a container runtime in memory, for tests: it implements the Go interfaces of the Container
// Runtime Interface without running anything.
//
// The guarantee: sandboxes, containers and images go through the states of a real runtime, in its order. Errors
// are gRPC statuses. A Life defines the behaviour of a container, before its start or during its run. Logs are
// real files in CRI format. No code waits on a mutex or starts a goroutine, so the package works in the bubbles
// of testing/synctest.
//
// The surprise: it is strict where runtimes differ. To stop a missing container is an error. The directory of a
// log must exist before the container starts. Lists come in no useful order. A stopped sandbox has no address
// any more.
//
// providertest/inprocess does not replace this package: it takes whole pods and restarts and probes their
// containers itself, and podruntime is tested for doing that. Nor does this package replace inprocess: it runs
// no programs, and the library cannot import the module podruntime.
package fakecri
