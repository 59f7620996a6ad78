// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// shelled has containers with what stands for a shell, which knows the scripts of this package and no other. TestScripts runs them in a real one.
type shelled struct{ *inprocess.Provider }

// keyed ends its input at the key that a terminal has for it.
type keyed struct{ io.Reader }

// Read implements io.Reader.
func (k keyed) Read(b []byte) (int, error) {
	n, err := k.Reader.Read(b)
	if at := bytes.IndexByte(b[:n], 4); at >= 0 {
		return at, io.EOF
	}
	return n, err
}

// behind is a caller with another input, and perhaps without its terminal.
type behind struct {
	api.AttachIO
	in  io.Reader
	tty bool
}

// Stdin implements api.AttachIO.
func (b behind) Stdin() io.Reader { return b.in }

// TTY implements api.AttachIO.
func (b behind) TTY() bool { return b.tty }

// Stderr implements api.AttachIO.
func (b behind) Stderr() io.WriteCloser {
	if b.tty {
		return nil
	}
	return b.Stdout()
}

// RunInContainer implements nodeutil.Provider.
func (s shelled) RunInContainer(ctx context.Context, namespace, pod, container string, command []string, attach api.AttachIO) error {
	if len(command) != 1 || command[0] != shell || !attach.TTY() {
		return fmt.Errorf("%q: want a shell on a terminal", command)
	}
	lines := bufio.NewReader(attach.Stdin())
	if first, err := lines.ReadString('\n'); err != nil || first != typed {
		return fmt.Errorf("the shell reads %q: %v", first, err)
	}
	say := func(mark string) { _, _ = fmt.Fprintf(attach.Stdout(), "%s\n", mark) } // who is gone reads nothing
	say("$ " + typed + readyMark)
	text, err := octalLines(lines)
	if err != nil {
		return err
	}
	words, rest := set(text)
	say(beginMark)
	to := behind{AttachIO: attach}
	switch rest {
	case kept + begins + ends:
		to.in, to.tty = keyed{lines}, true
	case unchanged + begins + fed + "{ " + ends + ";}":
		in, feed := io.Pipe()
		defer in.Close()
		go func() {
			defer feed.Close()
			for {
				line, err := lines.ReadString('\n')
				if err != nil || line == "\n" {
					return
				}
				if _, err := feed.Write(printed(line)); err != nil {
					return
				}
			}
		}()
		to.in = in
	case unchanged + begins + "{ " + ends + ";} </dev/null":
	default:
		return fmt.Errorf("the shell does not know %q", rest)
	}
	err = s.Provider.RunInContainer(ctx, namespace, pod, container, words, to)
	var exit interface{ ExitStatus() int }
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		return err
	}
	say(exitMark + strconv.Itoa(code))
	return nil
}

// octalLines are what lines stand for, until an empty one.
func octalLines(lines *bufio.Reader) (string, error) {
	var text strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == "\n" {
			return text.String(), nil
		}
		text.Write(printed(line))
	}
}

// printed is a line as printf writes it.
func printed(line string) (out []byte) {
	for _, digits := range strings.Split(strings.TrimSuffix(line, "\n"), `\`)[1:] {
		n, err := strconv.ParseUint(digits, 8, 8)
		if err != nil {
			panic(line)
		}
		out = append(out, byte(n))
	}
	return out
}

// set are the words that a script begins with, and what follows them.
func set(text string) (words []string, rest string) {
	rest = strings.TrimPrefix(text, "set --")
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
