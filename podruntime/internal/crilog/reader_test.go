// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func TestOptions(t *testing.T) {
	d := logDir(t, map[string]string{
		livePath + ".20260101-000001.gz": at(0, "stdout F a"),
		livePath + ".20260101-000003.gz": at(1, "stdout F b") + at(2, "stderr F c"),
		livePath + ".20260101-000005":    at(3, "stdout P d1") + at(4, "stdout P d2") + at(4, "stdout F d3"),
		livePath:                         at(5, "stdout F ") + at(6, "stdout F f"),
	})
	stamp := func(second int) string { return base.Add(time.Duration(second)*time.Second).Format(stampLayout) + " " }
	for name, tc := range map[string]struct {
		opts api.ContainerLogOpts
		want string
	}{
		"all":                 {api.ContainerLogOpts{}, "a\nb\nc\nd1d2d3\n\nf\n"},
		"tail 1":              {api.ContainerLogOpts{Tail: 1}, "f\n"},
		"tail 2":              {api.ContainerLogOpts{Tail: 2}, "\nf\n"},
		"tail 3":              {api.ContainerLogOpts{Tail: 3}, "d1d2d3\n\nf\n"},
		"tail 4":              {api.ContainerLogOpts{Tail: 4}, "c\nd1d2d3\n\nf\n"},
		"tail 5":              {api.ContainerLogOpts{Tail: 5}, "b\nc\nd1d2d3\n\nf\n"},
		"tail 6":              {api.ContainerLogOpts{Tail: 6}, "a\nb\nc\nd1d2d3\n\nf\n"},
		"tail 100":            {api.ContainerLogOpts{Tail: 100}, "a\nb\nc\nd1d2d3\n\nf\n"},
		"limit":               {api.ContainerLogOpts{LimitBytes: 6}, "a\nb\nc\n"},
		"limit in line":       {api.ContainerLogOpts{LimitBytes: 8}, "a\nb\nc\nd1"},
		"limit and tail":      {api.ContainerLogOpts{LimitBytes: 3, Tail: 3}, "d1d"},
		"stamps":              {api.ContainerLogOpts{Timestamps: true, Tail: 3}, stamp(3) + "d1d2d3\n" + stamp(5) + "\n" + stamp(6) + "f\n"},
		"limit counts stamps": {api.ContainerLogOpts{Timestamps: true, Tail: 1, LimitBytes: 10}, "2026-01-01"},
		"since":               {api.ContainerLogOpts{SinceTime: base.Add(2 * time.Second)}, "c\nd1d2d3\n\nf\n"},
		"since in a line":     {api.ContainerLogOpts{SinceTime: base.Add(4 * time.Second)}, "d2d3\n\nf\n"},
		"since and tail":      {api.ContainerLogOpts{SinceTime: base.Add(6 * time.Second), Tail: 3}, "f\n"},
		"since seconds":       {api.ContainerLogOpts{SinceSeconds: 10}, ""},
		"follow what ended":   {api.ContainerLogOpts{Follow: true, Tail: 2}, "\nf\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(t, d, tc.opts); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct{ log, want string }{
		"nothing":                      {"", ""},
		"garbage is left out":          {"hello\n" + at(0, "stdout F a") + "2026 stdout F x\n" + at(0, "stdin F x") + at(0, "stdout"), "a\n"},
		"a tag may have company":       {at(0, "stdout P:x a") + at(0, "stdout F:y b"), "ab\n"},
		"an unfinished line":           {at(0, "stdout F a") + strings.TrimSuffix(at(1, "stdout F b"), "\n"), "a\nb"},
		"half a head":                  {at(0, "stdout F a") + "2026-01-01T00:0", "a\n"},
		"a line without end":           {at(0, "stdout P a"), "a"},
		"a line longer than a buffer":  {at(0, "stdout F "+long) + at(0, "stdout F a"), long + "\na\n"},
		"a part longer than a buffer":  {at(0, "stdout P "+long) + at(0, "stdout F a"), long + "a\n"},
		"long garbage":                 {long + "\n" + at(0, "stdout F a"), "a\n"},
		"the other stream in between":  {at(0, "stdout P a") + at(0, "stderr F b") + at(0, "stdout F c"), "a\nb\nc\n"},
		"an offset in the time":        {"2026-01-01T01:00:00.5+01:00 stdout F a\n", "a\n"},
		"carriage returns are content": {at(0, "stdout F a\r"), "a\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := logDir(t, map[string]string{livePath: tc.log})
			if got := read(t, d, api.ContainerLogOpts{}); got != tc.want {
				t.Errorf("got %.200q, want %.200q", got, tc.want)
			}
		})
	}
}

// A timestamp has nine digits, independently of the runtime's format, and keeps its time zone.
func TestStamps(t *testing.T) {
	d := logDir(t, map[string]string{livePath: "2026-01-01T01:00:00.5+01:00 stdout P a\n" + at(0, "stderr F b") + at(1, "stdout F c")})
	want := "2026-01-01T01:00:00.500000000+01:00 a\n2026-01-01T00:00:00.000000000Z b\n2026-01-01T00:00:01.000000000Z c\n"
	if got := read(t, d, api.ContainerLogOpts{Timestamps: true}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecurityF1NoWayOutOfTheDirectory(t *testing.T) {
	d := logDir(t, map[string]string{"pod/app/real.log": at(0, "stdout F a"), "pod/x/1.log": ""})
	links := map[string]string{
		"pod/app/shadow.log": "/etc/shadow",
		"pod/app/up.log":     "../../../../../../../../etc/shadow",
		"pod/app/in.log":     "real.log",
		"pod/etc":            "/etc",
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(d.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"pod/app/shadow.log", "pod/app/up.log", "pod/etc/shadow", "pod/etc/hostname", "../x", "/etc/shadow", "", ".", "pod/app", d.path,
	} {
		stream, err := d.Read(t.Context(), path, api.ContainerLogOpts{}, nil)
		if err == nil {
			t.Errorf("%q was opened", path)
			_ = stream.Close()
		}
		if message := d.TerminationMessage(t.Context(), path); !strings.HasPrefix(message, "Error on reading termination message from logs: ") {
			t.Errorf("%q: message %q", path, message)
		}
	}
	stream, err := d.Read(t.Context(), filepath.Join(d.path, "pod/app/in.log"), api.ContainerLogOpts{}, nil)
	if err != nil {
		t.Fatalf("a link within the directory: %v", err)
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); string(got) != "a\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLogWithoutFile(t *testing.T) {
	d := logDir(t, map[string]string{"pod/app/1.log": ""})
	for _, path := range []string{livePath, "pod/none/0.log"} {
		if _, err := d.Read(t.Context(), path, api.ContainerLogOpts{}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want an error that says it does not exist", path, err)
		}
	}
}

func TestTerminationMessage(t *testing.T) {
	var short, long strings.Builder
	for range 100 {
		short.WriteString(at(0, "stderr F abc"))
		long.WriteString(at(0, "stderr F "+strings.Repeat("d", 99)))
	}
	d := logDir(t, map[string]string{"short.log": short.String(), "long.log": long.String(), "empty.log": ""})
	for name, want := range map[string]string{
		"short.log": strings.Repeat("abc\n", 80),
		"long.log":  strings.Repeat(strings.Repeat("d", 99)+"\n", 21)[100-48:],
		"empty.log": "",
	} {
		if got := d.TerminationMessage(t.Context(), name); got != want {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(want))
		}
	}
}

func TestRemove(t *testing.T) {
	d := logDir(t, map[string]string{
		livePath: "", livePath + ".20260101-000001.gz": "", livePath + ".20260101-000002": "", livePath + ".20260101-000002.tmp": "",
		"pod/app/1.log": "", livePath + ".notes": "",
	})
	for range 2 {
		if err := d.Remove(livePath); err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(d.path, "pod/app/*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left %q, %v; want what is not of this log", left, err)
	}
}
