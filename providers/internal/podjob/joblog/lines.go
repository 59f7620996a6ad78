// SPDX-License-Identifier: Apache-2.0

package joblog

import (
	"bytes"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// Lines reads the lines of a log of package podjob. The zero value is ready.
type Lines struct {
	text []byte // the parts of an incomplete line
}

// MaxText is the maximum length of an incomplete line that is buffered. A longer line, such as the output of a program without newlines, is returned
// in pieces.
const MaxText = 256 << 10

// Line parses a line in the format of the CRI: time, stream, P for a part or F for the last part, text.
func (l *Lines) Line(data []byte) (logs.Line, bool) {
	f := bytes.SplitN(bytes.TrimSuffix(data, []byte("\n")), []byte(" "), 4)
	if len(f) < 4 {
		return logs.Line{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(f[0]))
	if err != nil {
		return logs.Line{}, false
	}
	l.text = append(l.text, f[3]...)
	text := l.text
	switch {
	case string(f[2]) != "P":
		text = append(text, '\n')
	case len(text) < MaxText:
		return logs.Line{}, false
	}
	l.text = nil
	return logs.Line{At: at, Text: text}, true
}
