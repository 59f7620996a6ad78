// SPDX-License-Identifier: Apache-2.0

package api

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// FuzzParseLogOpts holds that every query of a client is either refused or parsed into valid options.
func FuzzParseLogOpts(f *testing.F) {
	for _, query := range []string{"tailLines=0&follow=true", "sinceSeconds=1", "sinceTime=2026-01-02T03:04:05Z", "limitBytes=-1", "%zz", "tailLines=1&tailLines=2"} {
		f.Add(query)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		opts, nothing, err := parseLogOpts(values, now)
		if err != nil && (nothing || opts != (ContainerLogOpts{})) {
			t.Errorf("%q: options %+v with error %v", query, opts, err)
		}
		if opts.Tail < 0 || opts.LimitBytes < 0 || opts.SinceSeconds < 0 {
			t.Errorf("%q: negative option in %+v", query, opts)
		}
		if nothing && (opts.Tail > 0 || opts.Follow || values.Get("tailLines") == "") {
			t.Errorf("%q: nothing is wanted with %+v", query, opts)
		}
	})
}

// FuzzTail holds that the tail consists of the last lines of the source, regardless of the sizes of reads. The tail of a tail is the tail
// itself.
func FuzzTail(f *testing.F) {
	f.Add("a\nb\nc\n", uint8(2))
	f.Add("a\nb", uint8(1))
	f.Add("\n\n", uint8(3))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		if n == 0 {
			return
		}
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		want := strings.Join(lines[max(0, len(lines)-int(n)):], "")
		for _, source := range []io.Reader{
			strings.NewReader(text),
			iotest.OneByteReader(strings.NewReader(text)),
			iotest.DataErrReader(strings.NewReader(text)),
			&tailReader{source: strings.NewReader(text), lines: int(n)},
		} {
			got, err := io.ReadAll(&tailReader{source: source, lines: int(n)})
			if err != nil || string(got) != want {
				t.Errorf("last %d lines of %q: got %q, %v, want %q", n, text, got, err, want)
			}
		}
	})
}
