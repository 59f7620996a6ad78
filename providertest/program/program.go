// SPDX-License-Identifier: Apache-2.0

// Package program describes the programs in containers of the contract as data: a Program prints, shows files,
// waits and ends with an exit code. One description runs in every image: as a script in an image with a shell
// (Shell), by the command contractprogram in an image without one (Args), and inside a test without any
// container (Run).
//
// The guarantee: the same Program behaves and prints the same in all three.
//
// Note: a Program that is not Deaf ends with exit code 0 when it is asked to stop, regardless of Exit.
package program

import (
	"encoding/json"
	"fmt"
	"time"
)

// DefaultMessagePath is the default file of a termination message.
const DefaultMessagePath = "/dev/termination-log"

// Program describes the actions of a process, in the order of the fields. The zero Program ends at once with
// exit code 0.
type Program struct {
	// Need are files that must exist: if a file is missing, the exit code is 1 at once.
	Need []string `json:"need,omitempty"`
	// Env prints the environment, as NAME=value lines.
	Env bool `json:"env,omitempty"`
	// Print are lines for the standard output, Stderr lines for the standard error.
	Print  []string `json:"print,omitempty"`
	Stderr []string `json:"stderr,omitempty"`
	// Write are files to make, with the line "written". The program prints "wrote PATH" or "cannot write PATH".
	Write []string `json:"write,omitempty"`
	// Show are files to print: the line "file PATH MODE", with the mode as in 0644, and the content, or "no file
	// PATH".
	Show []string `json:"show,omitempty"`
	// Message is a termination message, and MessagePath the file for it. Default DefaultMessagePath.
	Message     string `json:"message,omitempty"`
	MessagePath string `json:"messagePath,omitempty"`
	// Listen is a TCP port on which the program echoes received data until it ends. 0: none.
	Listen int32 `json:"listen,omitempty"`
	// Size prints "size ROWS COLUMNS" of the terminal, again after each change, until its input ends.
	Size bool `json:"size,omitempty"`
	// Echo copies the standard input to the standard output until it ends.
	Echo bool `json:"echo,omitempty"`
	// Tick prints "tick 1", "tick 2" and so on in this interval while the program stays. 0: never.
	Tick time.Duration `json:"tick,omitempty"`
	// Stay is the time that the program goes on before it ends; with Forever it runs until it is asked to stop.
	Stay time.Duration `json:"stay,omitempty"`
	// Deaf makes the program ignore the request to stop.
	Deaf bool `json:"deaf,omitempty"`
	// Exit is the exit code of a program that is not stopped.
	Exit int32 `json:"exit,omitempty"`
}

// Forever is a Stay without end.
const Forever = time.Duration(1<<63 - 1)

// Args returns the arguments with which the command contractprogram runs the program.
func (p Program) Args() []string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("program %+v cannot be written: %v", p, err))
	}
	return []string{string(text)}
}

// Parse is the inverse of Args.
func Parse(args []string) (Program, error) {
	var p Program
	if len(args) != 1 {
		return p, fmt.Errorf("parse a program: got %d arguments, want 1", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return p, fmt.Errorf("parse the program %.80q: %w", args[0], err)
	}
	return p, nil
}

func (p Program) messagePath() string {
	if p.MessagePath != "" {
		return p.MessagePath
	}
	return DefaultMessagePath
}
