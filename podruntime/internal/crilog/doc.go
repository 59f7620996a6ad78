// SPDX-License-Identifier: Apache-2.0

// Package crilog reads and rotates the logs that a CRI runtime writes: one file per run of a
// container, of lines "RFC3339Nano stream P|F text", with rotated files beside it (0.log.20260101-010203,
// with .gz when compressed).
//
// The guarantee: no file outside the root of the logs is opened, whatever symbolic links are
// in it; a reader takes a fixed amount of memory, however long the log or a line
// is; one that follows misses no line when files are rotated, and ends when the container has and all is read.
//
// What surprises: parts of a line (P) are joined, and counted as one line, where a kubelet counts
// parts, except that a tail counts a line of more than 64 KiB as several; and the lines of rotated files are read too, which a kubelet leaves out.
package crilog
