// SPDX-License-Identifier: Apache-2.0

// Package logs answers kubectl logs from the lines that a backend has: since, tail, timestamps, a limit of bytes, and following.
//
// It promises that lines come in the order of the source, each once, also where the old ones end and the new ones begin; and
// that nothing is read of the source that nobody asked for: a reader that stops, stops the source.
//
// What surprises: a tail reads the whole of what is there first, so a source that can begin later should do so.
package logs
