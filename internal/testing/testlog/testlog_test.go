// SPDX-License-Identifier: Apache-2.0

package testlog

import (
	"fmt"
	"strings"
	"testing"
)

// TestTail: the buffer keeps the end of the written text, for pieces of any size, in constant memory.
func TestTail(t *testing.T) {
	for _, piece := range []int{7, 100, tailSize - 1, tailSize, tailSize + 1, 5 * tailSize} {
		t.Run(fmt.Sprint(piece), func(t *testing.T) {
			var tail Tail
			var all strings.Builder
			for i := 0; all.Len() < 6*tailSize; i++ {
				text := strings.Repeat(string(rune('a'+i%26)), piece)
				all.WriteString(text)
				if n, err := tail.Write([]byte(text)); n != piece || err != nil {
					t.Fatalf("Write returned %d, %v, want %d", n, err, piece)
				}
				if got, want := tail.String(), all.String()[max(0, all.Len()-tailSize):]; got != want {
					t.Fatalf("after %d bytes the tail has %d bytes that are not the last %d", all.Len(), len(got), len(want))
				}
			}
			if cap(tail.buf) != 2*tailSize {
				t.Errorf("the tail has room for %d bytes, want %d", cap(tail.buf), 2*tailSize)
			}
		})
	}
}
