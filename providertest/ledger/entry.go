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

// Verb is what an Entry tells of.
type Verb string

// Calls have two entries, with Step Begin and End. Everything else has one.
const (
	Create Verb = "create" // a call of CreatePod
	Update Verb = "update" // a call of UpdatePod
	Delete Verb = "delete" // a call of DeletePod
	Start  Verb = "start"  // an instance began to run
	Stop   Verb = "stop"   // an instance ended, or was removed
	Status Verb = "status" // the status of an instance changed at the backend
	Report Verb = "report" // the provider told the controllers a status
)

// Step is which end of a call an Entry tells of.
type Step string

// The two ends of a call.
const (
	Begin Step = "begin"
	End   Step = "end"
)

// Entry is one thing that happened at the backend.
type Entry struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Verb Verb      `json:"verb"`
	Step Step      `json:"step,omitempty"`
	// UID, Namespace and Name are those of the pod: of a call, of the pod that was
	// handed in; else, of the pod that the instance was started for.
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Instance is the instance that starts, stops or changes; of Delete, the one
	// that the call stops, "" if there is none.
	Instance string `json:"instance,omitempty"`
	// Injected says that the harness did this, not the controllers: it started an
	// instance that nobody asked for, or removed one out of band.
	Injected bool `json:"injected,omitempty"`
	// Foreign says that the instance belongs to somebody else than this node.
	Foreign bool   `json:"foreign,omitempty"`
	Err     string `json:"err,omitempty"` // of End
	// Rejected says of the End of a call that the error is of the kind invalid-input: what was
	// asked can never work as it stands.
	Rejected bool              `json:"rejected,omitempty"`
	Status   *corev1.PodStatus `json:"status,omitempty"`
}

// Key is namespace/name of the pod.
func (e *Entry) Key() string { return e.Namespace + "/" + e.Name }

// Event is one thing that happened to a pod in the API server, as a watch tells
// it. What a list shows first is Added.
type Event struct {
	// Seq orders the event among the entries, if one Recorder took down both; 0:
	// the time does.
	Seq  int64           `json:"seq,omitempty"`
	At   time.Time       `json:"at"`
	Type watch.EventType `json:"type"`
	Pod  *corev1.Pod     `json:"pod"`
}

// Write adds entries to w, as JSON, one a line.
func Write(w io.Writer, entries ...Entry) error {
	encoder := json.NewEncoder(w)
	for i := range entries {
		if err := encoder.Encode(&entries[i]); err != nil {
			return fmt.Errorf("write ledger: %w", err)
		}
	}
	return nil
}

// Read reads what Write wrote. A last line without an end, as a process leaves it
// that was killed, is left out.
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
