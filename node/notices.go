// SPDX-License-Identifier: Apache-2.0

package node

import "time"

const (
	// firstChange is the time after which a failure with a changed text is reported again for the first time.
	// The first text often differs from the lasting one.
	firstChange = time.Minute
	// laterChange is the same time for each further report. Errors of clouds contain a different request ID each time, so a changed text
	// alone is not news.
	laterChange = 10 * time.Minute
	// firstRepeat and laterRepeat are the times after which a failure with the same text is reported again. API
	// servers forget events after an hour.
	firstRepeat = 10 * time.Minute
	laterRepeat = 50 * time.Minute
)

// notice is the last event and status message about a failure that repeats. Retries never end, so the number of messages must not grow with
// the number of tries. client-go calls this event correlation; notice also does it for the status. The zero value has reported nothing.
type notice struct {
	text  string
	at    time.Time
	times int
}

// next returns the notice updated by a failure with the text, and whether to report this failure.
func (n notice) next(text string, now time.Time) (_ notice, news bool) {
	if n.times > 0 && now.Sub(n.at) < n.pause(text) {
		return n, false
	}
	return notice{text: text, at: now, times: n.times + 1}, true
}

func (n notice) pause(text string) time.Duration {
	switch first := n.times == 1; {
	case text != n.text && first:
		return firstChange
	case text != n.text:
		return laterChange
	case first:
		return firstRepeat
	}
	return laterRepeat
}

// notices has the notices about the failures of a pod by event reason: a failure with another reason is news. A notices value is never
// modified.
type notices map[string]notice

// next returns the notices updated by a failure with the reason and the text, and whether to report this failure.
func (n notices) next(reason, text string, now time.Time) (_ notices, news bool) {
	last, news := n[reason].next(text, now)
	if !news {
		return n, false
	}
	after := notices{reason: last}
	for other, last := range n {
		if other != reason {
			after[other] = last
		}
	}
	return after, true
}
