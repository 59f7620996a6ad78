// SPDX-License-Identifier: Apache-2.0

// Package shellexec lets a POSIX shell in the container run a command, for services whose sessions tell no exit code and cannot end an input.
// The shell says how the command ended, and gives the command its input with an end.
//
// The guarantee: the caller gets every byte that the command printed and nothing else, the exit code, and the command gets every byte of the
// input and then its end. This holds with a terminal that the caller did not ask for, if the image has stty. It was tested with the sh
// of dash, bash and busybox.
//
// What surprises: standard output and standard error are one stream. The shell needs only what POSIX has built in, and stty of the image
// where the service always gives a terminal; without stty a command with input is refused. An input that ends on a terminal of the caller is
// ended with the key for that, Ctrl-D, which a program may read in its own way. The command sees the variables l, m, o and s of the shell only
// if the image exports them. Input takes up to five bytes for each of its bytes.
package shellexec
