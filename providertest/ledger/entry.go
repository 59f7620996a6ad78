// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Verb is the kind of an Entry.
type Verb string

// Calls have two entries, with Step Begin and End. All other entries are single.
const (
	Create Verb = "create" // a call of CreatePod
	Update Verb = "update" // a call of UpdatePod
	Delete Verb = "delete" // a call of DeletePod
	Start  Verb = "start"  // an instance began to run
	Stop   Verb = "stop"   // an instance ended, or was removed
	Status Verb = "status" // the status of an instance changed at the backend
	Report Verb = "report" // the provider reported a status to the controllers
)

// Step is the end of a call in an Entry: its begin or its end.
type Step string

// The two ends of a call.
const (
	Begin Step = "begin"
	End   Step = "end"
)

// Entry is one event at the backend.
type Entry struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Verb Verb      `json:"verb"`
	Step Step      `json:"step,omitempty"`
	// UID, Namespace and Name identify the pod. For a call, it is the pod in the argument; else, it is the pod
	// for which the instance was started.
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Instance is the starting, stopping or changing instance. For Delete, it is the instance stopped by the
	// call, "" without such an instance.
	Instance string `json:"instance,omitempty"`
	// Injected: the harness did this, not the controllers. It started an instance without a request, or removed
	// an instance out of band.
	Injected bool `json:"injected,omitempty"`
	// Foreign: the instance does not belong to this node.
	Foreign bool   `json:"foreign,omitempty"`
	Err     string `json:"err,omitempty"` // of End
	// Rejected: the End of a call has an error of the kind invalid-input. The request can never work as it
	// stands.
	Rejected bool              `json:"rejected,omitempty"`
	Status   *corev1.PodStatus `json:"status,omitempty"`
}

// Key is namespace/name of the pod.
func (e *Entry) Key() string { return e.Namespace + "/" + e.Name }

// Event is one event of a pod in the API server, as a watch reports it. A pod is Added in its first list.
type Event struct {
	// Seq orders the event among the entries, if one Recorder recorded both; 0: the time orders them.
	Seq  int64           `json:"seq,omitempty"`
	At   time.Time       `json:"at"`
	Type watch.EventType `json:"type"`
	Pod  *corev1.Pod     `json:"pod"`
}

// Write adds entries to w, as one line of JSON each.
func Write(w io.Writer, entries ...Entry) error {
	encoder := json.NewEncoder(w)
	for i := range entries {
		if err := encoder.Encode(&entries[i]); err != nil {
			return fmt.Errorf("write ledger: %w", err)
		}
	}
	return nil
}

// Read reads the output of Write. It leaves out an incomplete last line, possibly from a killed process.
func Read(r io.Reader) (entries []Entry, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return entries, fmt.Errorf("read ledger: %w", err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return entries, fmt.Errorf("read ledger, line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
}
