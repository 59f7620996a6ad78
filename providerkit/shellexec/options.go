// SPDX-License-Identifier: Apache-2.0

package shellexec

import "io"

// By says how the shell gets its script.
type By int

// The ways.
const (
	// Words hands the script and the command to the shell as its arguments.
	Words By = iota
	// Reading hands the shell a short script that reads the rest from the input, for services that limit the number or length of words. The shell
	// says first that it reads, so that a session may be known by its first output before anything is sent.
	// With a TTY it is Words, because the input is then the caller's.
	Reading
	// Typing types the script into a shell that runs on a terminal without arguments.
	Typing
)

// Options say what is to be run, and how.
type Options struct {
	// Command is what the caller wants to run.
	Command []string
	// By says how the shell gets its script.
	By By
	// TTY says that the caller asked for a terminal.
	TTY bool
	// Terminal says that the service gives the shell a terminal in any case.
	Terminal bool
	// Input says that the caller has an input.
	Input bool
	// Rows and Columns are the size that the shell gives to the terminal, for services that have no request for it. 0: the shell sets none.
	Rows, Columns uint16
	// Stdout gets what the command prints. Nil: nobody does.
	Stdout io.Writer
}
