// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// DebugPath is the path of the page about the pods of a process.
const DebugPath = "/debug/pods"

// DebugPage is the content of /debug/pods, as HTML for people and as JSON.
type DebugPage struct {
	Version string      `json:"version"`
	At      time.Time   `json:"at"`
	Nodes   []DebugNode `json:"nodes"`
	// Streams is the number of exec, attach and port-forward sessions under way.
	Streams int `json:"streams"`
	// Counts are counters of the process since its start: sync errors, provider calls, requests.
	Counts []DebugCount `json:"counts"`
}

// DebugNode is a node on the page.
type DebugNode struct {
	Name string `json:"name"`
	// Holder is the process that acts for the node, or "" if this process does.
	Holder string `json:"holder,omitempty"`
	// Provider is "healthy", "unknown" before the first Ping, or the error of the last Ping. Since is the start of this state.
	Provider string         `json:"provider"`
	Healthy  bool           `json:"healthy"`
	Since    time.Time      `json:"since,omitzero"`
	Queues   map[string]int `json:"queues"`
	Pods     []DebugPod     `json:"pods"`
}

// DebugPod is a pod on the page.
type DebugPod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Phase     string    `json:"phase"`
	WaitsFor  string    `json:"waitsFor,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Error     string    `json:"error,omitempty"`
	Tries     int       `json:"tries,omitempty"`
	NextTry   time.Time `json:"nextTry,omitzero"`
}

// DebugCount is a counter on the page.
type DebugCount struct {
	Name   string  `json:"name"`
	Labels string  `json:"labels,omitempty"`
	Value  float64 `json:"value"`
}
