// SPDX-License-Identifier: Apache-2.0

// Package remotetest contains the shared test tools of providers for another cluster: a remote cluster with
// goroutines as containers, and a line to it that tests can cut.
package remotetest
