// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

const (
	// firstChange is after how long a failure that changed its text is said again for the
	// first time. What fails first is often not what fails for long.
	firstChange = time.Minute
	// laterChange is the same for the next times. Errors of clouds carry another request id each
	// time, so a changed text is not yet news.
	laterChange = 10 * time.Minute
	// firstRepeat and laterRepeat are after how long a failure is said again in the same
	// words. API servers forget events after an hour.
	firstRepeat = 10 * time.Minute
	laterRepeat = 50 * time.Minute
)

// saying is what was said last of a failure that repeats. Tries never end, so what is said of them must
// not grow with their number, whatever the errors are. The zero value has said nothing.
type saying struct {
	text  string
	at    time.Time
	times int
}

// next returns what is said last after a failure with the text, and whether that failure is said.
func (s saying) next(text string, now time.Time) (_ saying, news bool) {
	if s.times > 0 && now.Sub(s.at) < s.pause(text) {
		return s, false
	}
	return saying{text: text, at: now, times: s.times + 1}, true
}

func (s saying) pause(text string) time.Duration {
	switch first := s.times == 1; {
	case text != s.text && first:
		return firstChange
	case text != s.text:
		return laterChange
	case first:
		return firstRepeat
	}
	return laterRepeat
}

// said is what was said of the failures of a pod, by the reasons of their events: a failure of another
// kind is news. It is never changed.
type said map[string]saying

// next is that of the saying with the reason.
func (s said) next(reason, text string, now time.Time) (_ said, news bool) {
	last, news := s[reason].next(text, now)
	if !news {
		return s, false
	}
	after := said{reason: last}
	for other, last := range s {
		if other != reason {
			after[other] = last
		}
	}
	return after, true
}

// clearError forgets what failed: the pod is in step with the backend.
func (st *errorMemory) clearError() {
	st.syncErr, st.said, st.unready, st.refused = nil, nil, false, 0
}

// warnings are the events of one look at what a pod names. Each try looks anew, so they are
// held until it is known whether they are said.
type warnings struct {
	record.EventRecorder // nil: what is not used for them
	held                 []warning
}

type warning struct{ kind, reason, message string }

// Event holds an event.
func (w *warnings) Event(_ runtime.Object, kind, reason, message string) {
	w.held = append(w.held, warning{kind, reason, message})
}

// warn records what a look at what the pod names has found, unless it was said not long ago.
func (c *PodController) warn(pod *corev1.Pod, found []warning) {
	if len(found) == 0 {
		return
	}
	news := false
	c.states.errors(keyOf(pod), pod.UID, func(st *errorMemory) {
		st.said, news = st.said.next(found[0].reason, fmt.Sprint(found), time.Now())
	})
	for _, w := range found {
		if news {
			c.recorder.Event(pod, w.kind, w.reason, w.message)
		}
	}
}
