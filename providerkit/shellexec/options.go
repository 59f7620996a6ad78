// SPDX-License-Identifier: Apache-2.0

package shellexec

import "io"

// By says how the shell gets its script.
type By int

// The ways.
const (
	// Words hands the script and the command to the shell as its arguments.
	Words By = iota
	// Reading gives the shell a short script that reads the rest from the input, for services that limit the
	// number or length of words. The shell first prints that it reads, so the first output identifies a session
	// before anything is sent. With a TTY it is Words, because the input is then the caller's.
	Reading
	// Typing types the script into a shell on a terminal, started without arguments.
	Typing
)

// Options describe a command and its session.
type Options struct {
	// Command is the command of the caller.
	Command []string
	// By says how the shell gets its script.
	By By
	// TTY means that the caller asked for a terminal.
	TTY bool
	// Terminal means that the service always gives the shell a terminal.
	Terminal bool
	// Input means that the caller has an input.
	Input bool
	// Rows and Columns are the terminal size set by the shell, for services without a request for it. With 0 the
	// shell sets none.
	Rows, Columns uint16
	// Stdout gets the output of the command. Nil discards it.
	Stdout io.Writer
	// Begun is called by Write when the command begins. Nil is no call.
	Begun func()
}
