// SPDX-License-Identifier: Apache-2.0

// Package shellexec runs a command through a POSIX shell in the container, for services whose sessions report no
// exit code and cannot end an input. The shell reports the end of the command, and gives the command an input
// with an end.
//
// The guarantee: the caller gets every byte of the command's output and no other byte, and the exit code. The command gets every byte of
// the input, and then its end. This also holds on a terminal that the caller did not request, if the image has stty. It was tested with the
// sh of dash, bash and busybox.
//
// Note: standard output and standard error are one stream. The shell needs only the built-ins of POSIX, and stty from the image if
// the service always allocates a terminal; without stty, a command with input is refused. On a terminal of the caller, the key Ctrl-D ends
// the input, and a program may read this key in its own way. The command sees the shell variables l, m, o and s only if the image exports
// them. Each input byte takes up to five bytes.
package shellexec
