// SPDX-License-Identifier: Apache-2.0

// Package shelltest imitates a shell in the container of an emulator, whose containers are not processes. It
// knows only the scripts of package shellexec.
//
// The guarantee: a command gets the words, the input and the kind of terminal that a shell would give it.
//
// Note: it recognises the scripts by their parts and runs nothing of them. Package shellexec tests with
// the shells of the machine that real shells do the same.
package shelltest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Run imitates a shell with this command line, and calls run for the command in the script. The shell prints an
// exit code; Run returns any other error of run.
func Run(command []string, attach api.AttachIO, run func(command []string, attach api.AttachIO) error) error {
	var lines *bufio.Reader
	if in := attach.Stdin(); in != nil {
		lines = bufio.NewReader(in)
	}
	var mark, text string
	var words []string
	switch {
	case len(command) == 1 && lines != nil && attach.TTY():
		first, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		mark, text, _ = strings.Cut(strings.TrimPrefix(first, "m="), ";")
		say(attach, "$ "+first+"\x1e"+mark+" ready\n") // like a shell with a prompt
	case len(command) >= 5 && command[1] == "-c":
		text, mark, words = command[2], command[4], command[5:]
		if strings.Contains(text, "ready") {
			say(attach, "\x1e"+mark+" ready\n")
		}
	default:
		return fmt.Errorf("the shell does not know %q", command)
	}
	if strings.Contains(text, "eval") {
		script, err := untilDot(lines)
		if err != nil {
			return fmt.Errorf("read the script: %w", err)
		}
		words, text = set(script)
	}
	to := behind{AttachIO: attach}
	switch {
	case strings.Contains(text, "</dev/null"):
	case strings.Contains(text, "printf %b"):
		in, fed := io.Pipe()
		defer in.Close()
		go feed(lines, fed) // ends with the input, or with the command
		to.in = in
	case strings.Contains(text, "trap :"):
		to.tty = true
		if lines != nil {
			to.in = keyed{lines}
		}
	default:
		return fmt.Errorf("the shell does not know %q", text)
	}
	if strings.Contains(text, "stty raw") {
		say(attach, "\x1e"+mark+" raw\n")
	} else {
		say(attach, "\x1e"+mark+" begun\n")
	}
	err := run(words, to)
	var exit utilexec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		return err
	}
	say(attach, fmt.Sprintf("\x1e%s %d\n", mark, code))
	return nil
}

// say prints a line. It ignores errors, because a disconnected caller reads nothing.
func say(attach api.AttachIO, text string) { _, _ = io.WriteString(attach.Stdout(), text) }

// behind is a session whose input comes from the shell.
type behind struct {
	api.AttachIO
	in  io.Reader
	tty bool
}

// Stdin implements api.AttachIO.
func (b behind) Stdin() io.Reader { return b.in }

// Stderr implements api.AttachIO.
func (b behind) Stderr() io.WriteCloser {
	if b.tty {
		return nil
	}
	return b.Stdout()
}

// TTY implements api.AttachIO.
func (b behind) TTY() bool { return b.tty }

// keyed ends an input at the terminal's end-of-file key.
type keyed struct{ io.Reader }

// Read implements io.Reader.
func (k keyed) Read(data []byte) (int, error) {
	n, err := k.Reader.Read(data)
	if at := bytes.IndexByte(data[:n], 4); at >= 0 {
		return at, io.EOF
	}
	return n, err
}

// feed gives a command its input.
func feed(lines *bufio.Reader, to *io.PipeWriter) {
	defer to.Close()
	for {
		line, err := lines.ReadString('\n')
		if err != nil || line == ".\n" {
			return
		}
		if _, err := io.WriteString(to, printed(line)); err != nil {
			return
		}
	}
}

// untilDot returns the decoded lines before a line with a dot.
func untilDot(lines *bufio.Reader) (string, error) {
	if lines == nil {
		return "", errors.New("the shell has no input")
	}
	var text strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == ".\n" {
			return text.String(), nil
		}
		text.WriteString(printed(line))
	}
}

var octal = regexp.MustCompile(`\\[0-7]{3}`)

// printed is a line as printf %b writes it.
func printed(line string) string {
	return octal.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(text string) string {
		n, _ := strconv.ParseUint(text[1:], 8, 8) // of three digits
		return string([]byte{byte(n)})
	})
}

// set returns the words at the beginning of a script, and the rest of the script.
func set(script string) (words []string, rest string) {
	rest = strings.TrimPrefix(script, "set --")
	for strings.HasPrefix(rest, " '") {
		rest = rest[1:]
		word := ""
		for strings.HasPrefix(rest, "'") {
			part, after, _ := strings.Cut(rest[1:], "'")
			word, rest = word+part, after
			if strings.HasPrefix(rest, `\'`) {
				word, rest = word+"'", rest[2:]
			}
		}
		words = append(words, word)
	}
	return words, strings.TrimPrefix(rest, ";")
}
