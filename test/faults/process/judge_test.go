// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// settled is the time without any event after which a finished name is judged.
const settled = 3 * time.Second

// retire judges and forgets the finished names.
func (r *records) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, l := range r.names {
		if !l.over || time.Since(l.touched) < settled || !l.through() {
			continue
		}
		r.violations = append(r.violations, l.judge()...)
		delete(r.names, name)
	}
}

// through reports whether both sides have removed all pods of the name.
func (l *life) through() bool {
	for _, p := range l.pods {
		if !p.gone || p.live > 0 {
			return false
		}
	}
	return true
}

// failure judges the remaining names and returns all violations.
func (r *records) failure() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.violations
	for _, l := range r.names {
		found = append(found, l.judge()...)
	}
	return found
}

// judged fails the test for each violation.
func (w *world) judged() {
	w.Helper()
	for i, v := range w.records.failure() {
		if i == 10 {
			w.Errorf("and more")
			break
		}
		w.Error(v)
	}
}

// judge returns the violations in the records of one name.
func (l *life) judge() (found []string) {
	l.history.End = time.Now()
	for _, v := range append(ledger.Check(l.history, "S7"), l.unasked()...) {
		found = append(found, v.String()+"\n"+l.summary())
	}
	return found
}

// unasked checks S7 with the test's own knowledge. The daemon may learn of a deletion before the watch shows it,
// so the order of the watch proves nothing. The test itself requests every deletion, so it knows the time.
func (l *life) unasked() (found []ledger.Violation) {
	for _, e := range l.history.Ledger {
		p := l.pods[e.UID]
		if e.Verb == ledger.Delete && e.Step == ledger.Begin && (p.asked.IsZero() || e.At.Before(p.asked)) {
			found = append(found, ledger.Violation{Invariant: "S7", UID: e.UID, Key: e.Key(), At: e.At,
				Text: "the backend is asked to stop it, and nobody has deleted it"})
		}
	}
	return found
}

// foreign is the key under which another writer numbers its writes, in ascending order.
const foreign = "example.test/foreign"

// foreignWrites returns the writes of the tests' other writer between two events.
func foreignWrites(before, after *corev1.Pod) (writes []ledger.ForeignWrite) {
	old := foreignNumbers(before)
	for part, text := range foreignValues(after) {
		if n, _ := strconv.Atoi(text); n > old[part] {
			writes = append(writes, ledger.ForeignWrite{UID: after.UID, Field: part.Field, Key: part.Key, Value: ledger.Fields(after)[part]})
		}
	}
	return writes
}

func foreignNumbers(pod *corev1.Pod) map[ledger.Part]int {
	numbers := map[ledger.Part]int{}
	if pod != nil {
		for part, text := range foreignValues(pod) {
			numbers[part], _ = strconv.Atoi(text)
		}
	}
	return numbers
}

// foreignValues returns the numbers of the other writer in a pod, as text.
func foreignValues(pod *corev1.Pod) map[ledger.Part]string {
	values := map[ledger.Part]string{
		{Field: ledger.Label, Key: foreign}:      pod.Labels[foreign],
		{Field: ledger.Annotation, Key: foreign}: pod.Annotations[foreign],
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == foreign {
			values[ledger.Part{Field: ledger.Condition, Key: foreign}] = c.Message
		}
	}
	return values
}

// summary returns a short history of the name.
func (l *life) summary() (out string) {
	entries := l.history.Ledger
	for _, v := range l.history.API {
		for ; len(entries) > 0 && entries[0].Seq < v.Seq; entries = entries[1:] {
			out += tell(&entries[0])
		}
		s := &v.Pod.Status
		out += fmt.Sprintf("    %s api     %-8s %s phase=%s %s %q deleting=%v foreign=%v\n", v.At.Format("05.000"), v.Type, v.Pod.UID[:8],
			s.Phase, s.Reason, s.Message, v.Pod.DeletionTimestamp != nil, foreignNumbers(v.Pod))
	}
	for i := range entries {
		out += tell(&entries[i])
	}
	return out
}

func tell(e *ledger.Entry) string {
	text := fmt.Sprintf("    %s backend %s %s %s %s %s", e.At.Format("05.000"), e.Verb, e.Step, e.UID[:8], e.Instance, e.Err)
	if e.Status != nil {
		text += fmt.Sprintf(" phase=%s %q", e.Status.Phase, e.Status.Message)
	}
	return text + "\n"
}
