// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command contractprogram runs one program of the contract in an image without a shell. Build it without cgo: it
// needs no files then. Its arguments are the result of program.Program.Args.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func main() {
	p, err := program.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	stop := make(chan struct{})
	go func() {
		<-signals
		close(stop)
	}()
	os.Exit(int(p.Run(context.Background(), processWorld(stop))))
}

// processWorld returns the world of this process.
func processWorld(stop <-chan struct{}) program.World {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	resized := make(chan struct{})
	go func() {
		for range changed {
			resized <- struct{}{}
		}
	}()
	return program.World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ(), Stop: stop, Resized: resized,
		Read: func(path string) ([]byte, fs.FileMode, error) {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, 0, err
			}
			info, err := os.Stat(path)
			if err != nil {
				return nil, 0, err
			}
			return data, info.Mode(), nil
		},
		Write: func(path string, data []byte) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o644)
		},
		Listen: func(ctx context.Context, port int32) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
		},
		Size: func() (rows, columns int, err error) {
			s, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
			if err != nil {
				return 0, 0, err
			}
			return int(s.Row), int(s.Col), nil
		},
	}
}
