// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// source returns lines in batches. With wait, it then returns the batches of more until more is closed.
type source struct {
	batches [][]logs.Line
	more    chan []logs.Line
	err     error // after the batches
	closed  bool
}

func (s *source) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	if len(s.batches) > 0 {
		b := s.batches[0]
		s.batches = s.batches[1:]
		return b, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	if !wait {
		return nil, io.EOF
	}
	select {
	case b, ok := <-s.more:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *source) Close() error {
	s.closed = true
	return nil
}

func line(second int, text string) logs.Line {
	return logs.Line{At: noon.Add(time.Duration(second) * time.Second), Text: []byte(text)}
}

// expected returns the output for the options, by a simple implementation.
func expected(old, later []logs.Line, o api.ContainerLogOpts, now time.Time) string {
	since := o.SinceTime
	if o.SinceSeconds > 0 {
		since = now.Add(-time.Duration(o.SinceSeconds) * time.Second)
	}
	young := func(all []logs.Line) (some []logs.Line) {
		for _, l := range all {
			if !l.At.Before(since) {
				some = append(some, l)
			}
		}
		return some
	}
	lines := young(old)
	if o.Tail > 0 && len(lines) > o.Tail {
		lines = lines[len(lines)-o.Tail:]
	}
	if o.Follow {
		lines = append(lines, young(later)...)
	}
	text := ""
	for _, l := range lines {
		if o.Timestamps {
			text += l.At.Format("2006-01-02T15:04:05") + ".000000000Z "
		}
		text += string(l.Text)
	}
	if o.LimitBytes > 0 && len(text) > o.LimitBytes {
		text = text[:o.LimitBytes]
	}
	return text
}

func TestReaderGivesWhatIsAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := 0
		batches := func(name string) (all [][]logs.Line, flat []logs.Line) {
			for range rapid.IntRange(0, 4).Draw(t, name) {
				var b []logs.Line
				for range rapid.IntRange(0, 3).Draw(t, "lines") {
					second += rapid.IntRange(0, 2).Draw(t, "seconds")
					b = append(b, line(second, rapid.StringMatching("[a-z]{0,5}\n").Draw(t, "text")))
				}
				all, flat = append(all, b), append(flat, b...)
			}
			return all, flat
		}
		s := &source{more: make(chan []logs.Line, 10)}
		var old, later []logs.Line
		s.batches, old = batches("old")
		next, later := batches("later")
		for _, b := range next {
			s.more <- b
		}
		close(s.more)
		o := api.ContainerLogOpts{
			Tail: rapid.IntRange(0, 5).Draw(t, "tail"), LimitBytes: rapid.IntRange(0, 60).Draw(t, "limit"),
			Timestamps: rapid.Bool().Draw(t, "timestamps"), Follow: rapid.Bool().Draw(t, "follow"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "since") {
		case 1:
			o.SinceSeconds = rapid.IntRange(1, 10).Draw(t, "since seconds")
		case 2:
			o.SinceTime = noon.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "since time")) * time.Second)
		}
		now := noon.Add(time.Duration(second) * time.Second)
		r := logs.NewReader(t.Context(), s, o, now)
		got, err := io.ReadAll(iotest.OneByteReader(r))
		if want := expected(old, later, o, now); string(got) != want || err != nil {
			t.Errorf("got %q, %v\nwant %q", got, err, want)
		}
		if err := r.Close(); err != nil || !s.closed {
			t.Errorf("Close: %v, the source was closed: %v", err, s.closed)
		}
	})
}

func TestReaderEndsWhenItsReaderDoes(t *testing.T) {
	for name, leave := range map[string]func(cancel context.CancelFunc, r io.Closer){
		"the context ends": func(cancel context.CancelFunc, _ io.Closer) { cancel() },
		"it is closed":     func(_ context.CancelFunc, r io.Closer) { _ = r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := logs.NewReader(ctx, &source{batches: [][]logs.Line{{line(0, "a\n")}}}, api.ContainerLogOpts{Follow: true}, noon)
				ended := make(chan error, 1)
				go func() {
					_, err := io.ReadAll(r)
					ended <- err
				}()
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("a reader that follows has ended: %v", err)
				default:
				}
				leave(cancel, r)
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want that it was cancelled", err)
				}
			})
		})
	}
}

func TestReaderTellsWhatTheSourceSays(t *testing.T) {
	silence := errors.New("the backend does not answer")
	for _, tail := range []int{0, 3} {
		r := logs.NewReader(t.Context(), &source{batches: [][]logs.Line{{line(0, "a\n")}}, err: silence}, api.ContainerLogOpts{Tail: tail}, noon)
		if _, err := io.ReadAll(r); !errors.Is(err, silence) {
			t.Errorf("tail %d: got %v, want the source's error", tail, err)
		}
	}
}

// TestTailEnds: a tail without follow ends, even if the log always has more lines.
func TestTailEnds(t *testing.T) {
	asked := 0
	s := sourceFunc(func() ([]logs.Line, error) {
		if asked++; asked == 3 {
			return nil, io.EOF
		}
		return []logs.Line{line(asked, fmt.Sprintf("%d\n", asked))}, nil
	})
	r := logs.NewReader(t.Context(), s, api.ContainerLogOpts{Tail: 1}, noon)
	if got, err := io.ReadAll(io.LimitReader(r, 100)); string(got) != "2\n" || err != nil {
		t.Errorf("got %q, %v, want the last line of what was there", got, err)
	}
}

// TestTailIsOfOldLines: the tail limits the old lines only. All later lines are returned, even if many come at
// once.
func TestTailIsOfOldLines(t *testing.T) {
	asked := 0
	s := sourceFunc(func() ([]logs.Line, error) {
		switch asked++; asked {
		case 1:
			return []logs.Line{line(0, "a\n"), line(0, "b\n")}, nil
		case 3:
			return []logs.Line{line(1, "c\n"), line(1, "d\n")}, nil
		case 4:
			return []logs.Line{line(2, "e\n"), line(2, "f\n")}, nil
		}
		return nil, io.EOF
	})
	got, err := io.ReadAll(logs.NewReader(t.Context(), s, api.ContainerLogOpts{Tail: 1, Follow: true}, noon))
	if want := "b\nc\nd\ne\nf\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestTailIsBounded: a tail whose lines would fill the memory keeps the newest lines.
func TestTailIsBounded(t *testing.T) {
	const size, n = 1 << 20, 100
	batch := 0
	s := sourceFunc(func() ([]logs.Line, error) {
		if batch == n {
			return nil, io.EOF
		}
		batch++
		return []logs.Line{line(batch, fmt.Sprintf("%03d%s\n", batch, strings.Repeat("x", size)))}, nil
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := logs.NewReader(t.Context(), s, api.ContainerLogOpts{Tail: n}, noon)
	first := make([]byte, 3)
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if string(first) != "086" {
		t.Errorf("the first line is %s, want 086: the last 16 MiB", first)
	}
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 20<<20 {
		t.Errorf("%d MiB are held", held>>20)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), "\n100x") {
		t.Errorf("the newest line is missing: %v", err)
	}
}

type sourceFunc func() ([]logs.Line, error)

func (f sourceFunc) Next(context.Context, bool) ([]logs.Line, error) { return f() }
