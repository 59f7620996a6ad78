// SPDX-License-Identifier: Apache-2.0

package shellexec

import "io"

// By is the way in which the shell receives its script.
type By int

// The ways.
const (
	// Words passes the script and the command to the shell as arguments.
	Words By = iota
	// Reading gives the shell a short script that reads the rest from the input, for services that limit the number or length of words. The
	// shell first prints that it reads, so the first output identifies a session before anything is sent. With a TTY it is the same as
	// Words, because the input then belongs to the caller.
	Reading
	// Typing types the script into a shell on a terminal, started without arguments.
	Typing
)

// Options describe a command and its session.
type Options struct {
	// Command is the command of the caller.
	Command []string
	// By is the way in which the shell receives its script.
	By By
	// TTY means that the caller requested a terminal.
	TTY bool
	// Terminal means that the service always allocates a terminal for the shell.
	Terminal bool
	// Input means that the caller has an input.
	Input bool
	// Rows and Columns are the terminal size set by the shell, for services without a resize request. With 0 the shell sets no size.
	Rows, Columns uint16
	// Stdout gets the output of the command. Nil discards it.
	Stdout io.Writer
	// Begun is called by Write when the command begins. It may be nil.
	Begun func()
}
