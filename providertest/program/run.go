// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"
)

// World is the environment in which a Program runs.
type World struct {
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer
	Env            []string
	// Read returns a file and its mode.
	Read func(path string) ([]byte, fs.FileMode, error)
	// Write makes a file.
	Write func(path string, data []byte) error
	// Listen listens on a TCP port.
	Listen func(ctx context.Context, port int32) (net.Listener, error)
	// Size returns the size of the terminal; Resized signals its changes. Nil: there is no terminal.
	Size    func() (rows, columns int, err error)
	Resized <-chan struct{}
	// Stop is closed when the program is asked to stop.
	Stop <-chan struct{}
}

// exited ends a program early.
type exited struct{ code int32 }

// Run runs the program until it ends, or ctx does, and returns its exit code. Everything that it started has
// ended then, except for a reader of Stdin, which ends with Stdin.
func (p Program) Run(ctx context.Context, w World) (code int32) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		if e, ok := recover().(exited); ok {
			code = e.code
		}
	}()
	p.performActions(w)
	if p.Listen != 0 {
		p.serveEcho(ctx, w, &running)
	}
	if p.Size {
		p.printSizes(ctx, w)
	}
	if p.Echo && w.Stdin != nil {
		p.echoInput(ctx, w)
	}
	return p.awaitEnd(ctx, w)
}

// performActions performs all actions that take no time.
func (p Program) performActions(w World) {
	for _, path := range p.Need {
		if _, _, err := w.Read(path); err != nil {
			fmt.Fprintf(w.Stderr, "no file %s\n", path)
			panic(exited{1})
		}
	}
	if p.Env {
		fmt.Fprintln(w.Stdout, strings.Join(w.Env, "\n"))
	}
	for _, line := range p.Print {
		fmt.Fprintln(w.Stdout, line)
	}
	for _, line := range p.Stderr {
		fmt.Fprintln(w.Stderr, line)
	}
	for _, path := range p.Write {
		if err := w.Write(path, []byte("written\n")); err != nil {
			fmt.Fprintf(w.Stdout, "cannot write %s\n", path)
		} else {
			fmt.Fprintf(w.Stdout, "wrote %s\n", path)
		}
	}
	for _, path := range p.Show {
		data, mode, err := w.Read(path)
		if err != nil {
			fmt.Fprintf(w.Stdout, "no file %s\n", path)
			continue
		}
		text := string(data)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		fmt.Fprintf(w.Stdout, "file %s %04o\n%s", path, mode.Perm(), text)
	}
	if p.Message != "" {
		if err := w.Write(p.messagePath(), []byte(p.Message)); err != nil {
			fmt.Fprintf(w.Stderr, "cannot write %s: %v\n", p.messagePath(), err)
			panic(exited{1})
		}
	}
}

// serveEcho echoes received data until ctx ends.
func (p Program) serveEcho(ctx context.Context, w World, running *sync.WaitGroup) {
	listener, err := w.Listen(ctx, p.Listen)
	if err != nil {
		fmt.Fprintf(w.Stderr, "cannot listen: %v\n", err)
		panic(exited{1})
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	running.Go(func() {
		defer stop()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			running.Go(func() {
				defer stop()
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // the caller may go at any time
			})
		}
	})
	fmt.Fprintln(w.Stdout, "listening")
}

// echoInput sends the input back until it ends, or the program is asked to stop.
func (p Program) echoInput(ctx context.Context, w World) {
	stop := w.Stop
	if p.Deaf {
		stop = nil
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(w.Stdout, w.Stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			panic(exited{1})
		}
	case <-stop:
		panic(exited{0})
	case <-ctx.Done():
		panic(exited{137})
	}
}

// printSizes prints the sizes of the terminal until the input ends.
func (p Program) printSizes(ctx context.Context, w World) {
	ended := make(chan struct{})
	go func() { // ends with the input, which ends with the session
		defer close(ended)
		_, _ = io.Copy(io.Discard, w.Stdin)
	}()
	for {
		if w.Size == nil {
			fmt.Fprintln(w.Stdout, "no terminal")
			panic(exited{1})
		}
		rows, columns, err := w.Size()
		if err != nil {
			fmt.Fprintf(w.Stdout, "no terminal: %v\n", err)
			panic(exited{1})
		}
		fmt.Fprintf(w.Stdout, "size %d %d\n", rows, columns)
		select {
		case <-w.Resized:
		case <-ended:
			return
		case <-ctx.Done():
			panic(exited{137})
		}
	}
}

// awaitEnd waits for the end.
func (p Program) awaitEnd(ctx context.Context, w World) int32 {
	if p.Stay == 0 {
		return p.Exit
	}
	stop := w.Stop
	if p.Deaf {
		stop = nil
	}
	end := time.NewTimer(p.Stay)
	defer end.Stop()
	var ticks <-chan time.Time
	if p.Tick > 0 {
		ticker := time.NewTicker(p.Tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for n := 1; ; {
		select {
		case <-ticks:
			fmt.Fprintf(w.Stdout, "tick %d\n", n)
			n++
		case <-end.C:
			return p.Exit
		case <-stop:
			return 0
		case <-ctx.Done():
			return 137
		}
	}
}
