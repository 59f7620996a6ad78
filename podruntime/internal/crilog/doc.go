// SPDX-License-Identifier: Apache-2.0

// Package crilog reads and rotates the logs that a CRI runtime writes: one file per run of a container, with
// lines "RFC3339Nano stream P|F text", and rotated files beside it (0.log.20260101-010203, with .gz when
// compressed).
//
// The guarantee: no file outside of the log directory is opened, whatever symbolic links are in it. A reader
// takes a fixed amount of memory, however long the log or a line is. A following reader misses no line when
// files are rotated, and ends after the container has ended and everything is read.
//
// The surprise: parts of a line (P) are joined, and count as one line, where a kubelet counts parts; only a tail
// counts a line of more than 64 KiB as several. And the lines of rotated files are read, too, which a kubelet
// leaves out.
package crilog
