// SPDX-License-Identifier: Apache-2.0

// Package wire defines the messages of the InterLink protocol, JSON over HTTP: from the virtual node to the API
// server, and from the API server to a plugin.
//
// Note: field names follow no single style, and requests with the method GET have a body. The API server
// decodes and encodes every message again, so a field missing in this package is lost on the way.
package wire

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Paths of the API server and of a plugin.
const (
	PathCreate      = "/create"
	PathDelete      = "/delete"
	PathStatus      = "/status"
	PathLogs        = "/getLogs"
	PathPing        = "/pinglink"    // of the API server
	PathUpdateCache = "/updateCache" // of the API server
	PathSystemInfo  = "/system-info" // of a plugin
)

// HeaderSession names a request, from the virtual node to the plugin.
const HeaderSession = "InterLink-Http-Session"

// AnnotationModes is the annotation of a ConfigMap of projected files with the modes of the files, by path, in
// JSON. This project defines the annotation; other plugins ignore it.
const AnnotationModes = "interlink.virtual-kubelet.io/modes"

// AnnotationJob is the annotation of a pod with the ID of its job.
const AnnotationJob = "JobID"

// ReasonLost is the reason for a container that the plugin has lost track of. The kubelet uses the same reason.
const ReasonLost = "ContainerStatusUnknown"

// Create is the body of a create to the API server.
type Create struct {
	Pod        *corev1.Pod        `json:"pod"`
	ConfigMaps []corev1.ConfigMap `json:"configmaps"`
	Secrets    []corev1.Secret    `json:"secrets"`
	// Projected has a ConfigMap for each projected volume, named as the volume: its keys are paths.
	Projected []corev1.ConfigMap `json:"projectedvolumesmaps"`
	// JobScriptURL is the service that makes the script of the job.
	JobScriptURL string `json:"jobscriptURL"`
}

// Created is the answer to a create.
type Created struct {
	PodUID string `json:"PodUID"`
	JobID  string `json:"PodJID"`
}

// Retrieved is the body of a create to a plugin.
type Retrieved struct {
	Pod        *corev1.Pod `json:"pod"`
	Containers []Container `json:"container"`
	// JobScript is the script of the job. Plugins that make their own scripts ignore it.
	JobScript string `json:"jobScript,omitempty"`
}

// Container holds the contents of the volumes of a container.
type Container struct {
	Name       string             `json:"name"`
	ConfigMaps []corev1.ConfigMap `json:"configMaps"`
	Projected  []corev1.ConfigMap `json:"projectedvolumemaps"`
	Secrets    []corev1.Secret    `json:"secrets"`
}

// PodStatus is the state of a pod as a plugin reports it.
type PodStatus struct {
	Name           string                   `json:"name"`
	UID            string                   `json:"UID"`
	Namespace      string                   `json:"namespace"`
	JobID          string                   `json:"JID"`
	Containers     []corev1.ContainerStatus `json:"containers"`
	InitContainers []corev1.ContainerStatus `json:"initContainers"`
}

// Logs is the body of a request for a log.
type Logs struct {
	Namespace string     `json:"Namespace"`
	PodUID    string     `json:"PodUID"`
	PodName   string     `json:"PodName"`
	Container string     `json:"ContainerName"`
	Options   LogOptions `json:"Opts"`
}

// LogOptions select a part of a log; 0 means no limit. The API server refuses Tail together with LimitBytes, and
// SinceSeconds together with SinceTime.
type LogOptions struct {
	Tail         int       `json:"Tail"`
	LimitBytes   int       `json:"Bytes"`
	Timestamps   bool      `json:"Timestamps"`
	Follow       bool      `json:"Follow"`
	Previous     bool      `json:"Previous"`
	SinceSeconds int       `json:"SinceSeconds"`
	SinceTime    time.Time `json:"SinceTime"`
}

// Ping is the optional answer of a plugin to a status request for no pods. The API server passes it on as the
// answer to a ping.
type Ping struct {
	Status    string     `json:"status"`
	Resources *Resources `json:"resources,omitempty"`
	Taints    []Taint    `json:"taints,omitempty"`
}

// Resources are the resources that a plugin has for pods, as quantities.
type Resources struct {
	CPU          string        `json:"cpu,omitempty"`
	Memory       string        `json:"memory,omitempty"`
	Pods         string        `json:"pods,omitempty"`
	Accelerators []Accelerator `json:"accelerators,omitempty"`
}

// Accelerator is a kind of device.
type Accelerator struct {
	ResourceType string   `json:"resourceType"`
	Model        string   `json:"model,omitempty"`
	Available    Quantity `json:"available"`
}

// Taint is a taint of the node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Quantity is a JSON number or string.
type Quantity string

// UnmarshalJSON implements json.Unmarshaler.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil {
		return err
	}
	*q = Quantity(number)
	return nil
}
