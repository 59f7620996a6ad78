// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// shelled has containers with what stands for a shell, which knows the scripts of this package and no other. TestScriptInShells runs them in
// real ones.
type shelled struct{ *inprocess.Provider }

// piped is a caller with another input.
type piped struct {
	api.AttachIO
	in io.Reader
}

// Stdin implements api.AttachIO.
func (p piped) Stdin() io.Reader { return p.in }

// RunInContainer implements nodeutil.Provider.
func (s *shelled) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	run := func(words []string, in io.Reader, mark string) error {
		err := s.Provider.RunInContainer(ctx, namespace, pod, container, words, piped{attach, in})
		var exit utilexec.ExitError
		code := 0
		if errors.As(err, &exit) {
			code = exit.ExitStatus()
		} else if err != nil {
			return err
		}
		_, err = fmt.Fprintf(attach.Stdout(), "\n%s %d\n", mark, code)
		return err
	}
	switch {
	case cmd[0] != "sh":
		return s.Provider.RunInContainer(ctx, namespace, pod, container, cmd, attach)
	case strings.HasPrefix(cmd[2], "echo "):
		_, err := fmt.Fprintln(attach.Stdout(), strings.TrimPrefix(cmd[2], "echo "))
		return err
	case strings.HasSuffix(cmd[2], typed):
		return run(cmd[5:], attach.Stdin(), cmd[4])
	case cmd[2] != reader:
		return fmt.Errorf("sh: %s is not known", cmd[2])
	}
	lines := bufio.NewReader(attach.Stdin())
	line, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	script := printed(line)
	words, rest := set(script)
	if !strings.Contains(rest, feeder) {
		return run(words, nil, cmd[4])
	}
	in, fed := io.Pipe()
	defer in.Close()
	go func() {
		defer fed.Close()
		for {
			line, err := lines.ReadString('\n')
			if err != nil || line == ".\n" {
				return
			}
			if _, err := fed.Write([]byte(printed(line))); err != nil {
				return
			}
		}
	}()
	return run(words, in, cmd[4])
}

var octal = regexp.MustCompile(`\\[0-7]{3}`)

// printed is a line as printf %b writes it.
func printed(line string) string {
	return octal.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(text string) string {
		n, _ := strconv.ParseUint(text[1:], 8, 8)
		return string([]byte{byte(n)})
	})
}

// set are the words that a script begins with, and what follows them.
func set(script string) (words []string, rest string) {
	rest = strings.TrimPrefix(script, "set --")
	for strings.HasPrefix(rest, " '") {
		var word strings.Builder
		rest = rest[2:]
		for {
			part, after, _ := strings.Cut(rest, "'")
			word.WriteString(part)
			rest = after
			if !strings.HasPrefix(rest, `\''`) {
				break
			}
			word.WriteString("'")
			rest = rest[3:]
		}
		words = append(words, word.String())
	}
	return words, rest
}
