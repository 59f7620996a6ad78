// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// bigLog is a log of any size whose lines are all the same. It counts the bytes that are read.
type bigLog struct {
	line string
	size int64
	read int64
}

var bigLine = at(0, "stdout F "+strings.Repeat("y", 90))

func (b *bigLog) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), b.size-off))
	for i := range n {
		p[i] = b.line[(off+int64(i))%int64(len(b.line))]
	}
	b.read += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestTailDoesNotReadTheWholeLog(t *testing.T) {
	length := int64(len(bigLine))
	b := &bigLog{line: bigLine, size: (1 << 30) / length * length}
	tail := tail{want: 100}
	offset, err := tail.findStart(b, b.size)
	if want := b.size - 100*length; offset != want || err != nil {
		t.Errorf("begins at %d, %v, want %d", offset, err, want)
	}
	if b.read > 2*blockSize {
		t.Errorf("%d bytes read", b.read)
	}
}

// TestSecurityF5TheTailOfALineWithoutEndIsBounded: the tail of a log stays cheap if the container writes no
// newline.
func TestSecurityF5TheTailOfALineWithoutEndIsBounded(t *testing.T) {
	flood := at(0, "stdout P "+strings.Repeat("y", 16<<10))
	length := int64(len(flood))
	for want := range 3 {
		want++
		b := &bigLog{line: flood, size: (1 << 30) / length * length}
		tail := tail{want: want}
		offset, err := tail.findStart(b, b.size)
		if got := b.size - offset; got > int64(want)*maxTailLine || got < length || err != nil {
			t.Errorf("tail %d begins %d bytes before the end, %v", want, got, err)
		}
		if most := int64(want)*maxTailLine + 2*blockSize; b.read > most {
			t.Errorf("tail %d reads %d bytes, want at most %d", want, b.read, most)
		}
	}
	d := logDir(t, map[string]string{livePath + ".20260101-000001": strings.Repeat(flood, 100), livePath: at(0, "stdout F first") + strings.Repeat(flood, 100)})
	for name, c := range map[string]struct {
		opts api.ContainerLogOpts
		most int
	}{
		"tail":           {api.ContainerLogOpts{Tail: 1}, maxTailLine},
		"limit":          {api.ContainerLogOpts{LimitBytes: 100}, 100},
		"tail and limit": {api.ContainerLogOpts{Tail: 1, LimitBytes: 100}, 100},
		"tail and since": {api.ContainerLogOpts{Tail: 1, SinceTime: base}, maxTailLine},
	} {
		if got := read(t, d, c.opts); len(got) > c.most || !strings.HasPrefix(got, "y") {
			t.Errorf("%s: got %d bytes that begin with %.10q, want at most %d of the line", name, len(got), got, c.most)
		}
	}
	// A line below the limit is shown as a whole.
	d = logDir(t, map[string]string{livePath: at(0, "stdout F a") + strings.Repeat(flood, 3) + at(0, "stdout F z")})
	if got := read(t, d, api.ContainerLogOpts{Tail: 1}); len(got) != 3*16<<10+len("z\n") {
		t.Errorf("a line of three parts: got %d bytes", len(got))
	}
}

func TestTailCountsAnUnfinishedLine(t *testing.T) {
	d := logDir(t, map[string]string{livePath: at(0, "stdout F a") + at(1, "stdout P b") + at(1, "stdout P c")})
	if got := read(t, d, api.ContainerLogOpts{Tail: 1}); got != "bc" {
		t.Errorf("got %q, want the parts of the last line", got)
	}
}

// TestTailOfAnyLog compares with the whole log, over lines and parts of all lengths in files of all kinds.
func TestTailOfAnyLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 6 {
		files := map[string]string{}
		for i := range 4 {
			name := livePath
			if i > 0 {
				name = fmt.Sprintf("%s.20260101-00000%d%s", livePath, i, []string{"", gz}[random.IntN(2)])
			}
			files[name] = randomLog(random)
		}
		d := logDir(t, files)
		all := strings.SplitAfter(read(t, d, api.ContainerLogOpts{}), "\n")
		all = all[:len(all)-1]
		for _, n := range []int{1, 2, len(all) / 2, len(all) - 1, len(all), len(all) + 1} {
			if n < 1 {
				continue
			}
			want := strings.Join(all[max(0, len(all)-n):], "")
			if got := read(t, d, api.ContainerLogOpts{Tail: n}); got != want {
				t.Fatalf("round %d: tail %d of %d lines: got %d bytes, want %d", round, n, len(all), len(got), len(want))
			}
		}
	}
}

// randomLog returns lines of one stream. The last line is complete.
func randomLog(random *rand.Rand) string {
	var b bytes.Buffer
	for range random.IntN(12) {
		for range random.IntN(3) {
			b.WriteString(at(0, "stdout P "+strings.Repeat("p", random.IntN(10<<10))))
		}
		b.WriteString(at(0, "stdout F "+strings.Repeat("f", random.IntN(2)*random.IntN(40<<10))))
	}
	return b.String()
}
