// SPDX-License-Identifier: Apache-2.0

// Package logs serves kubectl logs from the lines of a backend: since, tail, timestamps, a byte limit, and follow.
//
// The guarantee: lines have the order of the source, each once, also at the transition from old to new lines. The source is read only on
// demand: a reader that stops also stops the source.
//
// Note: a tail first reads all present lines, so a source that can start at a later line should do so.
package logs
