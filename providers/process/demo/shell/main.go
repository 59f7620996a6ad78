// SPDX-License-Identifier: Apache-2.0

// Command shell is sh in the image of the first pod: mvdan.cc/sh, whose interpreter needs no other program. It
// runs a command (-c), files, and lines from standard input. It shows a prompt if standard input is a terminal.
//
// Note: it has no job control. Ctrl-C ends the running command, not the shell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

func main() {
	command := flag.Bool("c", false, "run the first argument, and pass those after the second")
	flag.Parse()
	err := runShell(*command, flag.Args(), os.Stdin, os.Stdout, os.Stderr)
	var status interp.ExitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "sh:", err)
		os.Exit(2)
	}
}

func runShell(command bool, args []string, stdin *os.File, stdout, stderr io.Writer) error {
	if command && len(args) == 0 {
		return errors.New("-c: want a command")
	}
	prompt := len(args) == 0 && term.IsTerminal(int(stdin.Fd()))
	var params []string
	if len(args) > 1 {
		params = args[1:]
		if command {
			params = args[2:]
		}
	}
	r, err := interp.New(interp.StdIO(stdin, stdout, stderr), interp.Interactive(prompt), interp.Params(append([]string{"--"}, params...)...))
	if err != nil {
		return err
	}
	switch {
	case command:
		return runScript(r, strings.NewReader(args[0]), "")
	case prompt:
		return runInteractive(r, stdin, stdout, stderr)
	case len(args) == 0:
		return runScript(r, stdin, "")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	return runScript(r, f, args[0])
}

func runScript(r *interp.Runner, source io.Reader, name string) error {
	program, err := syntax.NewParser().Parse(source, name)
	if err != nil {
		return err
	}
	return r.Run(context.Background(), program)
}

// runInteractive runs commands line by line. It prints the error of a line, and continues with the next line.
func runInteractive(r *interp.Runner, stdin io.Reader, stdout, stderr io.Writer) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // the prompt ignores the signal
	for {
		parser := syntax.NewParser()
		fmt.Fprint(stdout, "$ ")
		var wrong error
		for statements, err := range parser.InteractiveSeq(stdin) {
			if wrong = err; err != nil {
				break
			}
			if parser.Incomplete() {
				fmt.Fprint(stdout, "> ")
				continue
			}
			for _, statement := range statements {
				ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
				err := r.Run(ctx, statement)
				interrupted := ctx.Err() != nil
				stop()
				if r.Exited() && !interrupted {
					return err
				}
			}
			fmt.Fprint(stdout, "$ ")
		}
		if wrong == nil {
			return nil // the end of the input
		}
		fmt.Fprintln(stderr, "sh:", wrong)
	}
}
