// SPDX-License-Identifier: Apache-2.0

// Package remotetest has what tests of providers for another cluster share: a remote cluster whose containers are goroutines, and a
// line to it that can be cut.
package remotetest
