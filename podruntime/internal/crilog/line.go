// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"time"
)

// stampLayout has all nine digits, like a kubelet's timestamps.
const stampLayout = "2006-01-02T15:04:05.000000000Z07:00"

// maxHead bounds the head of a line, the part before its text.
const maxHead = 64

// entry is one line of a file.
type entry struct {
	at     time.Time
	stderr bool
	part   bool   // the text continues with the next entry of its stream
	text   []byte // without the newline at its end
}

// parseLine reads a line, or its beginning. ok is false if the text is not a CRI log line.
func parseLine(line []byte) (e entry, ok bool) {
	stamp, rest, ok := bytes.Cut(line, blank)
	if !ok || len(stamp) > maxHead || e.at.UnmarshalText(stamp) != nil {
		return entry{}, false
	}
	stream, rest, ok := bytes.Cut(rest, blank)
	switch {
	case !ok:
		return entry{}, false
	case string(stream) == "stderr":
		e.stderr = true
	case string(stream) != "stdout":
		return entry{}, false
	}
	tags, text, ok := bytes.Cut(rest, blank)
	if !ok {
		return entry{}, false
	}
	tag, _, _ := bytes.Cut(tags, colon) // later formats may have further tags
	e.part = string(tag) == "P"
	e.text = bytes.TrimSuffix(text, newline)
	return e, true
}

var (
	blank   = []byte{' '}
	colon   = []byte{':'}
	newline = []byte{'\n'}
)
