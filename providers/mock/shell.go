// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"k8s.io/utils/exec"
)

// shell runs commands in a simulated container.
type shell struct {
	ctx            context.Context
	env            []string // NAME=value
	hostname       string
	dir            string
	disk           *disk
	tty            bool
	stdin          io.Reader
	stdout, stderr io.Writer
}

// notFoundCode is the exit code of a shell for an unknown command.
const notFoundCode = 127

// fail writes a message to standard error and returns an error that carries the exit code to the client.
func (sh *shell) fail(code int, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if message != "" {
		fmt.Fprintln(sh.stderr, message)
	}
	return exec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
}

// resolve makes name absolute.
func (sh *shell) resolve(name string) string {
	if strings.HasPrefix(name, "/") {
		return clean(name)
	}
	return path.Join(sh.dir, name)
}

// run runs one command. Its error carries an exit code.
func (sh *shell) run(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	if command, ok := commands[path.Base(argv[0])]; ok {
		return command(sh, argv[1:])
	}
	return sh.fail(notFoundCode, "%s: not found; a mock container knows: %s", argv[0], commandNames())
}

// script runs commands separated by newlines, `;` and `&&`, with quotes, variables and `> file`. The last
// command decides the exit code; exit ends the script.
func (sh *shell) script(text string) error {
	var result error
	for _, s := range splitScript(text) {
		if sh.ctx.Err() != nil {
			return sh.ctx.Err()
		}
		if s.ifSucceeded && result != nil {
			continue
		}
		words := sh.expand(s.words)
		result = sh.redirected(words, s.target)
		if len(words) > 0 && words[0] == "exit" {
			return result
		}
	}
	return result
}

// redirected runs a command and writes its output to the file called target, if any.
func (sh *shell) redirected(argv []string, target string) error {
	if target == "" {
		return sh.run(argv)
	}
	var out strings.Builder
	inner := *sh
	inner.stdout = &out
	result := inner.run(argv)
	sh.dir = inner.dir
	if err := sh.disk.write(sh.resolve(target), file{data: []byte(out.String()), mode: 0o644, modified: time.Now()}); err != nil {
		return sh.fail(1, "sh: %v", err)
	}
	return result
}

// expand replaces variables in words outside of single quotes.
func (sh *shell) expand(words []word) []string {
	expanded := make([]string, len(words))
	for i, w := range words {
		expanded[i] = w.text
		if !w.literal {
			expanded[i] = os.Expand(w.text, sh.variable)
		}
	}
	return expanded
}

func (sh *shell) variable(name string) string {
	for i := len(sh.env) - 1; i >= 0; i-- {
		if key, value, _ := strings.Cut(sh.env[i], "="); key == name {
			return value
		}
	}
	return ""
}
