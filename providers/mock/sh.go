// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lineLimit is the maximum length of a line typed into a shell.
const lineLimit = 64 << 10

// shCommand runs `sh -c SCRIPT`, else the lines of standard input.
func shCommand(sh *shell, args []string) error {
	for i, arg := range args {
		if len(arg) > 1 && arg[0] == '-' && arg[len(arg)-1] == 'c' && i+1 < len(args) {
			return sh.script(args[i+1])
		}
	}
	if len(withoutOptions(args)) > 0 {
		f, ok := sh.disk.read(sh.resolve(withoutOptions(args)[0]))
		if !ok {
			return sh.fail(notFoundCode, "sh: %s: No such file or directory", args[0])
		}
		return sh.script(string(f.data))
	}
	return sh.interact()
}

// interact runs line after line until the input ends or a line runs exit.
func (sh *shell) interact() error {
	lines := &lineReader{in: bufio.NewReader(sh.stdin)}
	if sh.tty {
		lines.echo = sh.stdout
	}
	var result error
	for {
		if sh.tty {
			if _, err := io.WriteString(sh.stdout, "$ "); err != nil {
				return err
			}
		}
		line, err := lines.next()
		if line != "" {
			result = sh.script(line)
			if exits(line) || sh.ctx.Err() != nil {
				return result
			}
		}
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			return err
		}
	}
}

// exits reports whether a line ends the shell.
func exits(line string) bool {
	for _, s := range splitScript(line) {
		if len(s.words) > 0 && s.words[0].text == "exit" {
			return true
		}
	}
	return false
}

// lineReader reads lines. For a terminal it also echoes the input and handles the keys for backspace, interrupt
// and end of input.
type lineReader struct {
	in   *bufio.Reader
	echo io.Writer
}

const (
	keyInterrupt = 0x03
	keyEnd       = 0x04
	keyBackspace = 0x08
	keyDelete    = 0x7f
)

func (l *lineReader) next() (string, error) {
	var line []byte
	for {
		c, err := l.in.ReadByte()
		if err != nil {
			return string(line), err
		}
		switch {
		case c == '\n', c == '\r' && l.echo != nil:
			return string(line), l.show("\r\n")
		case l.echo == nil:
			line = append(line, c)
		case c == keyEnd && len(line) == 0:
			return "", errors.Join(l.show("\r\n"), io.EOF)
		case c == keyInterrupt:
			return "", l.show("^C\r\n")
		case c == keyBackspace || c == keyDelete:
			if len(line) > 0 {
				line = line[:len(line)-1]
				err = l.show("\b \b")
			}
		case c >= ' ':
			line = append(line, c)
			err = l.show(string(c))
		}
		if err == nil && len(line) > lineLimit {
			err = fmt.Errorf("a line of more than %d bytes", lineLimit)
		}
		if err != nil {
			return "", err
		}
	}
}

func (l *lineReader) show(text string) error {
	if l.echo == nil {
		return nil
	}
	_, err := io.WriteString(l.echo, text)
	return err
}

// terminal writes lines as a terminal wants them, with a carriage return.
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
