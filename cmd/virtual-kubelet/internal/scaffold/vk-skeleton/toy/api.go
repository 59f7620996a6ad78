// SPDX-License-Identifier: Apache-2.0

package toy

import "time"

// Spec is a group in a request.
type Spec struct {
	Tags       map[string]string `json:"tags"`
	Restart    string            `json:"restart"` // always, on-failure or never
	Containers []ContainerSpec   `json:"containers"`
}

// ContainerSpec is a container in a request.
type ContainerSpec struct {
	Name     string   `json:"name"`
	Image    string   `json:"image"`
	Command  []string `json:"command"`
	Env      []string `json:"env"` // NAME=value
	MilliCPU int64    `json:"milliCPU"`
	Memory   int64    `json:"memory"` // in bytes
}

// Group is a group in a response.
type Group struct {
	Name       string            `json:"name"`
	Tags       map[string]string `json:"tags"`
	Created    time.Time         `json:"created"`
	Address    string            `json:"address"`
	Containers []Container       `json:"containers"`
}

// States of containers.
const (
	stateCreating = "creating"
	stateRunning  = "running"
	stateWaiting  = "waiting" // for its next run
	stateStopped  = "stopped"
)

// Container is a container in a response.
type Container struct {
	Name     string `json:"name"`
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
	Run      Run    `json:"run"`
	Last     *Run   `json:"last,omitempty"` // the run before
}

// Run is one run of a container.
type Run struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	ExitCode *int32    `json:"exitCode,omitempty"`
}

// page is a page of a list.
type page struct {
	Groups []Group `json:"groups"`
	Next   string  `json:"next,omitempty"`
}

// refusal is the body of an error response.
type refusal struct {
	Error string `json:"error"`
}
