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

// bigLog is a log of any size, of lines that are all the same; it counts what is read of it.
type bigLog struct {
	size int64
	read int64
}

var bigLine = at(0, "stdout F "+strings.Repeat("y", 90))

func (b *bigLog) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), b.size-off))
	for i := range n {
		p[i] = bigLine[(off+int64(i))%int64(len(bigLine))]
	}
	b.read += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestTailDoesNotReadTheWholeLog(t *testing.T) {
	length := int64(len(bigLine))
	b := &bigLog{size: (1 << 30) / length * length}
	tail := tail{want: 100}
	offset, err := tail.plain(b, b.size)
	if want := b.size - 100*length; offset != want || err != nil {
		t.Errorf("begins at %d, %v, want %d", offset, err, want)
	}
	if b.read > 2*blockSize {
		t.Errorf("%d bytes read", b.read)
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

// randomLog has lines of one stream, the last of which is whole.
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
