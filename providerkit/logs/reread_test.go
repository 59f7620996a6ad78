// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// book is a log at a service.
type book struct {
	mu    sync.Mutex
	text  string
	ended bool
	err   error // of the next read
	reads []time.Time
}

func (b *book) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *book) source() Reread {
	return Reread{
		Every: 2 * time.Second,
		Ended: func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.ended },
		Read: func(_ context.Context, since time.Time, _ bool) ([]Line, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reads = append(b.reads, since)
			err := b.err
			b.err = nil
			return Stamped(b.text), err
		},
	}
}

// TestRereadGivesEachLineOnce: each line is returned once, although several reads return lines with the same
// time, and although the log loses its beginning.
func TestRereadGivesEachLineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{text: "2026-01-01T00:00:01Z a\n2026-01-01T00:00:02Z b\n"}
		r, err := b.source().Open(t.Context(), api.ContainerLogOpts{Follow: true}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		done := make(chan error, 1)
		go func() { _, err := io.Copy(&got, r); done <- err }()
		for _, step := range []struct{ text, want string }{
			{"2026-01-01T00:00:01Z a\n2026-01-01T00:00:02Z b\n2026-01-01T00:00:02Z c\n", "a\nb\nc\n"},
			{"2026-01-01T00:00:02Z b\n2026-01-01T00:00:02Z c\n2026-01-01T00:00:02Z c\nnone\n", "a\nb\nc\nc\nnone\n"},
			{"2026-01-01T00:00:03Z d\n", "a\nb\nc\nc\nnone\nd\n"},
		} {
			b.set(func() { b.text = step.text })
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got.String() != step.want {
				t.Errorf("got %q, want %q", got.String(), step.want)
			}
		}
		b.set(func() { b.ended, b.text = true, b.text+"2026-01-01T00:00:04Z end\n" })
		if err := <-done; err != nil || !strings.HasSuffix(got.String(), "d\nend\n") {
			t.Errorf("got %q, %v", got.String(), err)
		}
		if last := b.reads[len(b.reads)-1]; !last.Equal(time.Date(2026, 1, 1, 0, 0, 3, 0, time.UTC)) {
			t.Errorf("the last read was of lines since %v, and the last line was of second 3", last)
		}
	})
}

// TestRereadReadsOnceWithoutFollow: without follow, the log is read once. The requested time is passed on.
func TestRereadReadsOnceWithoutFollow(t *testing.T) {
	b := &book{text: "2026-01-01T00:00:01Z a\n2026-01-01T00:00:02Z b\n"}
	now := time.Date(2026, 1, 1, 0, 0, 12, 0, time.UTC)
	r, err := b.source().Open(t.Context(), api.ContainerLogOpts{SinceSeconds: 10}, now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if string(got) != "b\n" || err != nil || len(b.reads) != 1 || !b.reads[0].Equal(now.Add(-10*time.Second)) {
		t.Errorf("got %q, %v, by reads of %v", got, err, b.reads)
	}
}

// TestRereadErrors: the error of the first read is the error of the log. A later error ends the log, unless it
// carries a time to retry.
func TestRereadErrors(t *testing.T) {
	broken := errors.New("broken")
	b := &book{err: errdefs.RetryAfter(broken, time.Second)}
	if _, err := b.source().Open(t.Context(), api.ContainerLogOpts{}, time.Now()); !errors.Is(err, broken) {
		t.Errorf("the first read: got %v", err)
	}
	for name, c := range map[string]struct {
		err, want error
		after     time.Duration
	}{
		"not found":   {errdefs.NotFound("gone"), nil, 2 * time.Second},
		"broken":      {broken, broken, 2 * time.Second},
		"a while":     {errdefs.RetryAfter(broken, 9*time.Second), nil, 11 * time.Second},
		"a short one": {errdefs.RetryAfter(broken, time.Second), nil, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, begun := &book{}, time.Now()
				r, err := b.source().Open(t.Context(), api.ContainerLogOpts{Follow: true}, begun)
				if err != nil {
					t.Fatal(err)
				}
				b.set(func() { b.err, b.ended = c.err, true })
				if _, err := io.ReadAll(r); !errors.Is(err, c.want) || time.Since(begun) != c.after {
					t.Errorf("it ended after %s with %v, want %s and %v", time.Since(begun), err, c.after, c.want)
				}
			})
		})
	}
}
