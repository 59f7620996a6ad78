// SPDX-License-Identifier: Apache-2.0

// Package logs answers kubectl logs from the lines of a backend: since, tail, timestamps, a byte limit, and
// follow.
//
// The guarantee: lines come in the order of the source, each once, also where old lines end and new lines begin.
// Nothing is read from the source without need: a reader that stops also stops the source.
//
// The surprise: a tail first reads all present lines, so a source that can begin later should do so.
package logs
