// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// follower reads a growing log on a goroutine.
type follower struct {
	stream io.ReadCloser
	alive  atomic.Bool
	done   chan struct{}

	mu   sync.Mutex
	text strings.Builder
	err  error
}

func follow(ctx context.Context, t *testing.T, d *Dir, opts api.ContainerLogOpts) *follower {
	t.Helper()
	f := &follower{done: make(chan struct{})}
	f.alive.Store(true)
	opts.Follow = true
	var err error
	f.stream, err = d.Read(ctx, livePath, opts, f.alive.Load)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.stream.Close(); <-f.done })
	go func() {
		defer close(f.done)
		chunk := make([]byte, 100)
		for {
			n, err := f.stream.Read(chunk)
			f.mu.Lock()
			f.text.Write(chunk[:n])
			f.err = err
			f.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return f
}

func (f *follower) got() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String(), f.err
}

// soon waits until the follower has checked the file.
func soon() {
	time.Sleep(3 * followEvery)
	synctest.Wait()
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		r.lines(3)
		f := follow(t.Context(), t, d, api.ContainerLogOpts{Tail: 1})
		fresh := follow(t.Context(), t, d, api.ContainerLogOpts{SinceTime: time.Now().Add(1)})
		soon()
		if got, _ := f.got(); got != numbered(3, 3) {
			t.Errorf("at first: %q", got)
		}
		r.lines(1)
		soon()
		if got, _ := f.got(); got != numbered(3, 4) {
			t.Errorf("after a line: %q", got)
		}
		half, rest := time.Now().Format(time.RFC3339Nano)+" stdout F he", "llo\n"
		r.write(half)
		soon()
		r.write(rest)
		soon()
		if got, _ := f.got(); got != numbered(3, 4)+"hello\n" {
			t.Errorf("after two halves: %q", got)
		}
		r.write(half)
		f.alive.Store(false)
		<-f.done
		if got, err := f.got(); got != numbered(3, 4)+"hello\nhe" || !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %q, %v", got, err)
		}
		if got, _ := fresh.got(); got != numbered(4, 4)+"hello\n" {
			t.Errorf("what is new: %q", got)
		}
	})
}

// The last lines of a container are often written just before it ends.
func TestFollowReadsAllAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		stream, err := d.Read(t.Context(), livePath, api.ContainerLogOpts{Follow: true}, func() bool {
			r.lines(1) // between the check of the file and the check of the container
			return r.n < 3
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if got, err := io.ReadAll(stream); string(got) != numbered(1, 3) || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestFollowSurvivesRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		rotator := &Rotator{
			Dir: d, MaxSize: 1, MaxFiles: 4, Every: time.Second,
			Running: func(context.Context) ([]Container, error) { return []Container{{ID: "a", Path: r.path}}, nil },
			Reopen:  r.reopen,
		}
		r.lines(1)
		f := follow(t.Context(), t, d, api.ContainerLogOpts{})
		soon()
		for range 10 {
			r.lines(5)
			if err := rotator.rotateAll(t.Context()); err != nil {
				t.Error(err)
			}
			r.lines(5)
			time.Sleep(time.Second) // at most one rotation per second
		}
		// Two rotations happen between two checks.
		pause := func() { time.Sleep(followEvery / 4) }
		soon()
		for _, ending := range []string{".20990101-000001", ".20990101-000002"} {
			r.lines(2)
			if err := os.Rename(r.path, r.path+ending); err != nil {
				t.Fatal(err)
			}
			r.lines(2) // the runtime keeps writing until it reopens the log
			if err := r.reopen(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			pause()
		}
		r.lines(2)
		f.alive.Store(false)
		<-f.done
		if got, err := f.got(); got != numbered(1, r.n) || !errors.Is(err, io.EOF) {
			t.Errorf("%v, got %d bytes, want %d lines:\n%s", err, len(got), r.n, got)
		}
	})
}

// The new file exists a moment before the runtime writes to it.
func TestFollowReadsTheOldFileOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		f := follow(t.Context(), t, d, api.ContainerLogOpts{})
		r.lines(1)
		soon()
		if err := os.Rename(r.path, r.path+".20260101-000001"); err != nil {
			t.Fatal(err)
		}
		writeFile(t, r.path, "")
		time.Sleep(followEvery * 3 / 2)
		r.lines(1)
		if err := r.reopen(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		r.lines(1)
		soon()
		if got, _ := f.got(); got != numbered(1, 3) {
			t.Errorf("got %q", got)
		}
	})
}

// Between the two steps of a rotation there is no file.
func TestFollowWhileThereIsNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		r.lines(2)
		if err := os.Rename(r.path, r.path+".20260101-000001"); err != nil {
			t.Fatal(err)
		}
		f := follow(t.Context(), t, d, api.ContainerLogOpts{})
		soon()
		if got, _ := f.got(); got != numbered(1, 2) {
			t.Errorf("before: %q", got)
		}
		if err := r.reopen(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		r.lines(1)
		soon()
		f.alive.Store(false)
		<-f.done
		if got, _ := f.got(); got != numbered(1, 3) {
			t.Errorf("after: %q", got)
		}
	})
}

func TestFollowEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		r.lines(1)
		ctx, cancel := context.WithCancel(t.Context())
		left, closed := follow(ctx, t, d, api.ContainerLogOpts{}), follow(t.Context(), t, d, api.ContainerLogOpts{})
		soon()
		cancel()
		_ = closed.stream.Close()
		_ = closed.stream.Close()
		<-left.done
		<-closed.done
		if _, err := left.got(); !errors.Is(err, context.Canceled) {
			t.Errorf("left: %v", err)
		}
		if _, err := closed.got(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestLimitEndsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		f := follow(t.Context(), t, d, api.ContainerLogOpts{LimitBytes: 9})
		r.lines(9)
		<-f.done
		if got, err := f.got(); got != "line 1\nli" || !errors.Is(err, io.EOF) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
