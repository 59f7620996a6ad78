// SPDX-License-Identifier: Apache-2.0

// Package fakecri is a container runtime in memory, for tests: it implements the
// Go interfaces of the Container Runtime Interface without running anything.
//
// The guarantee: sandboxes, containers and images go through the states of a real
// runtime, in the order that a real one demands, and its errors are gRPC statuses.
// What a container does is a Life, told before it starts or from the test as it runs. Logs are real
// files in CRI format. Nothing waits on a mutex and nothing starts a goroutine, so that it works
// in the bubbles of testing/synctest.
//
// What surprises: it is strict where runtimes differ. To stop a container that does not
// exist is an error, the directory of a log has to exist before the container starts,
// lists come in no useful order, and a sandbox that has stopped has no address any more.
//
// providertest/inprocess does not replace it: that package takes whole pods and restarts and probes their containers itself, and podruntime
// is tested for doing this. Nor does this package replace inprocess: it runs no programs, and the library cannot import the module podruntime.
package fakecri
