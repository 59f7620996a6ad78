// SPDX-License-Identifier: Apache-2.0

// Package crilog reads and rotates the logs that a CRI runtime writes: one file per run of a container, with lines "RFC3339Nano stream P|F text", and
// rotated files in the same directory (0.log.20260101-010203, with .gz when compressed).
//
// The guarantee: no file outside of the log directory is opened, even if the directory has symbolic links. A reader uses a fixed amount of memory,
// independently of the length of the log and its lines. A following reader misses no line when files are rotated, and ends after the container has
// ended and everything is read.
//
// Note: parts of a line (P) are joined and count as one line, while a kubelet counts the parts. Only a tail counts a line of more than 64 KiB
// as several lines. The lines of rotated files are read, too, while a kubelet ignores them.
package crilog
