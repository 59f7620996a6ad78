// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Field is a part of a pod written by other clients than the node.
type Field string

// These are the fields judged by ForeignWritesSurvive, and Phase, which it ignores.
const (
	Label         Field = "label"
	Annotation    Field = "annotation"
	Finalizer     Field = "finalizer"
	Condition     Field = "condition"
	ResourceClaim Field = "resourceClaimStatus"
	Phase         Field = "phase"
)

// ForeignWrite is a write to a pod by another client than the node.
type ForeignWrite struct {
	Seq   int64 // the same as Seq of Event
	At    time.Time
	UID   types.UID
	Field Field
	Key   string // of the label or annotation; the type of the condition; a name
	// Value is the written value, in the form of Fields; "" removes it.
	Value string
}

// cameAfter reports whether the write certainly came after the event.
func (w *ForeignWrite) cameAfter(v *Event) bool {
	if w.Seq != 0 && v.Seq != 0 {
		return w.Seq > v.Seq
	}
	return w.At.After(v.At)
}

// Part names one value in a pod.
type Part struct {
	Field Field
	Key   string
}

// Fields returns the parts of a pod written by other clients, in the form of ForeignWrite.Value. It leaves out
// the times of a condition.
func Fields(pod *corev1.Pod) map[Part]string {
	m := map[Part]string{{Phase, ""}: string(pod.Status.Phase)}
	for k, v := range pod.Labels {
		m[Part{Label, k}] = "=" + v
	}
	for k, v := range pod.Annotations {
		m[Part{Annotation, k}] = "=" + v
	}
	for _, f := range pod.Finalizers {
		m[Part{Finalizer, f}] = "set"
	}
	for _, c := range pod.Status.Conditions {
		m[Part{Condition, string(c.Type)}] = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	for _, c := range pod.Status.ResourceClaimStatuses {
		text, err := json.Marshal(c)
		if err != nil {
			panic(fmt.Sprintf("resource claim status of pod %s does not marshal: %v", pod.Name, err)) // the value came from JSON
		}
		m[Part{ResourceClaim, c.Name}] = string(text)
	}
	return m
}

// Writes returns the writes of another client between before and after.
func Writes(before, after *corev1.Pod, at time.Time) (out []ForeignWrite) {
	old, now := Fields(before), Fields(after)
	for part, value := range now {
		if old[part] != value {
			out = append(out, ForeignWrite{At: at, UID: after.UID, Field: part.Field, Key: part.Key, Value: value})
		}
	}
	for part := range old {
		if _, has := now[part]; !has {
			out = append(out, ForeignWrite{At: at, UID: after.UID, Field: part.Field, Key: part.Key})
		}
	}
	return out
}

// ForeignWritesSurvive is S6: the writes of other clients to a pod's labels, annotations, finalizers, conditions
// and resource claim statuses are in every later event, until they write again.
func ForeignWritesSurvive(h History) (out []Violation) {
	events := h.byUID()
	type place struct {
		uid  types.UID
		part Part
	}
	writes := map[place][]*ForeignWrite{}
	for i := range h.Foreign {
		w := &h.Foreign[i]
		p := place{w.UID, Part{w.Field, w.Key}}
		writes[p] = append(writes[p], w)
	}
	for i := range h.Foreign {
		w := &h.Foreign[i]
		p := place{w.UID, Part{w.Field, w.Key}}
		if writes[p][0] != w || w.Field == Phase {
			continue // judged with the first of the place
		}
		if v := findLostWrite(events[w.UID], writes[p], p.part); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// findLostWrite finds the first event that lacks the last write before it. An event of the same moment as a write
// may be older than the write.
func findLostWrite(events []*Event, writes []*ForeignWrite, part Part) *Violation {
	for _, v := range events {
		var may []string
		for _, w := range writes {
			switch {
			case w.cameAfter(v):
			case w.Seq != 0 && v.Seq != 0, w.At.Before(v.At):
				may = []string{w.Value}
			case len(may) == 0:
				may = []string{w.Value, Fields(v.Pod)[part]} // the value before the change
			default:
				may = append(may, w.Value)
			}
		}
		if has := Fields(v.Pod)[part]; len(may) > 0 && !slices.Contains(may, has) {
			violation := ofEvent("S6", v, "%s %s is %q, others wrote %q", part.Field, part.Key, has, may[len(may)-1])
			return &violation
		}
	}
	return nil
}
