// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// ended is the log of an ended container: it returns the existing lines once, and then EOF.
type ended struct{ lines []logs.Line }

func (e *ended) Next(context.Context, bool) ([]logs.Line, error) {
	if len(e.lines) == 0 {
		return nil, io.EOF
	}
	lines := e.lines
	e.lines = nil
	return lines, nil
}

// A GetContainerLogs for a backend that returns lines. The reader implements tail, since, timestamps and the
// other options.
func Example() {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	source := &ended{lines: []logs.Line{{At: at, Text: []byte("one\n")}, {At: at.Add(time.Second), Text: []byte("two\n")}}}
	reader := logs.NewReader(context.Background(), source, api.ContainerLogOpts{Tail: 1, Timestamps: true}, at)
	defer reader.Close()
	text, err := io.ReadAll(reader)
	fmt.Print(string(text), err)
	// Output:
	// 2026-01-01T12:00:01.000000000Z two
	// <nil>
}
