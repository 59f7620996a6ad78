// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/exec"
)

// shell runs the few commands of a simulated container.
type shell struct {
	ctx            context.Context
	env            []string // NAME=value
	hostname       string
	tty            bool
	stdin          io.Reader
	stdout, stderr io.Writer
}

// notFoundCode is the exit code of a shell for an unknown command.
const notFoundCode = 127

// errExit ends a script whose exit command gave 0.
var errExit = errors.New("exit")

// exitError writes a message to standard error and returns an error that carries the exit code to the client.
func (sh *shell) exitError(code int, format string, args ...any) error {
	if format != "" {
		fmt.Fprintf(sh.stderr, format+"\n", args...)
	}
	return exec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
}

// run runs one command. Its error carries an exit code.
func (sh *shell) run(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	args := argv[1:]
	switch path.Base(argv[0]) {
	case "sh", "bash", "ash":
		err := sh.runShell(args)
		if errors.Is(err, errExit) {
			return nil
		}
		return err
	case "echo":
		_, err := fmt.Fprintln(sh.stdout, strings.Join(args, " "))
		return err
	case "cat":
		if len(args) > 0 {
			return sh.exitError(1, "cat: %s: No such file or directory", args[0])
		}
		_, err := io.Copy(sh.stdout, sh.stdin)
		return err
	case "env":
		_, err := fmt.Fprintln(sh.stdout, strings.Join(sh.env, "\n"))
		return err
	case "hostname":
		_, err := fmt.Fprintln(sh.stdout, sh.hostname)
		return err
	case "sleep":
		return sh.sleep(args)
	case "true":
		return nil
	case "false":
		return sh.exitError(1, "")
	}
	return sh.exitError(notFoundCode, "%s: not found; a simulated container knows: cat echo env false hostname sh sleep true", argv[0])
}

// runShell runs the script of `sh -c SCRIPT`, else the lines of standard input.
func (sh *shell) runShell(args []string) error {
	if len(args) > 1 && strings.HasPrefix(args[0], "-") && strings.HasSuffix(args[0], "c") {
		return sh.runScript(args[1])
	}
	var result error
	lines := bufio.NewScanner(sh.stdin)
	next := func() (string, error) {
		if !lines.Scan() {
			return "", errors.Join(lines.Err(), io.EOF)
		}
		return lines.Text(), nil
	}
	if sh.tty {
		next = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{sh.stdin, sh.stdout}, "$ ").ReadLine
	}
	for {
		line, err := next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			return err
		}
		result = sh.runScript(line)
		if hasExit(line) || sh.ctx.Err() != nil {
			return result
		}
	}
}

// runScript runs commands separated by newlines and `;`. It expands variables and drops quotes. The last command
// decides the exit code; exit ends the script.
func (sh *shell) runScript(script string) error {
	var result error
	for _, words := range splitScript(script) {
		if sh.ctx.Err() != nil {
			return sh.ctx.Err()
		}
		if words[0] == "exit" {
			return sh.exit(words[1:])
		}
		for i := range words {
			words[i] = os.Expand(words[i], sh.variableValue)
		}
		result = sh.run(words)
	}
	return result
}

// splitScript returns the words of each command.
func splitScript(script string) [][]string {
	var commands [][]string
	for _, command := range strings.FieldsFunc(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		if words := strings.Fields(strings.NewReplacer(`'`, "", `"`, "").Replace(command)); len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands
}

// hasExit reports whether a script runs exit.
func hasExit(script string) bool {
	for _, words := range splitScript(script) {
		if words[0] == "exit" {
			return true
		}
	}
	return false
}

// exit returns the error of the exit command.
func (sh *shell) exit(args []string) error {
	if len(args) == 0 {
		return errExit
	}
	code, err := strconv.ParseUint(args[0], 10, 8)
	switch {
	case err != nil:
		return sh.exitError(2, "exit: %s: want a number from 0 to 255", args[0])
	case code == 0:
		return errExit
	}
	return sh.exitError(int(code), "")
}

// sleep waits for a number of seconds.
func (sh *shell) sleep(args []string) error {
	if len(args) == 0 {
		return sh.exitError(1, "sleep: missing operand")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil || seconds < 0 {
		return sh.exitError(1, "sleep: invalid time interval %q", args[0])
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-sh.ctx.Done():
		return sh.ctx.Err()
	}
}

// variableValue returns the last value of an environment variable.
func (sh *shell) variableValue(name string) string {
	for i := len(sh.env) - 1; i >= 0; i-- {
		if key, value, _ := strings.Cut(sh.env[i], "="); key == name {
			return value
		}
	}
	return ""
}

// terminal writes lines as a terminal wants them, with a carriage return. One write stays one write, so that no
// other output comes between a line and its end.
type terminal struct{ io.Writer }

// Write writes b and replaces each \n without a \r by \r\n.
func (t terminal) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b)+8)
	for i, c := range b {
		if c == '\n' && (i == 0 || b[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	if _, err := t.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
