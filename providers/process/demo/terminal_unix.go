// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// printSize prints the rows and columns of its terminal, now and after each change, until its input ends.
func printSize([]string) error {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	for {
		s, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return fmt.Errorf("ask for the size of the terminal: %w", err)
		}
		fmt.Println("size", s.Row, s.Col)
		select {
		case <-changed:
		case err := <-ended:
			return err
		}
	}
}
