// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// task is a task of a cluster.
type task struct {
	id, arn, cluster, group, startedBy, stopCode, reason string
	provider                                             string // of capacity; empty for a launch type
	definition                                           *definition
	request                                              []byte
	tags                                                 []any // the tags of the request
	untagged                                             bool  // the service has deleted the tags
	exec                                                 bool
	created, pulled, started, stopping, stopped          time.Time
	gone                                                 time.Time // when the runner no longer had the task
	status                                               corev1.PodStatus
	late                                                 *late                    // the containers that wait for the end of others; nil: none
	said                                                 string                   // its last reported state
	pumps                                                map[string]chan struct{} // of logs, by container and run; closed at the end
}

// lateSuffix is the suffix of the group of the containers of a task that wait for others to end. The runner has
// no such order.
const lateSuffix = "-late"

// late are the containers that wait for others to end.
type late struct {
	spec   corev1.PodSpec
	after  []string // containers
	began  bool
	status corev1.PodStatus
}

// groupOf returns the group of a container.
func (t *task) groupOf(container string) string {
	if t.late != nil && slices.ContainsFunc(t.late.spec.Containers, func(c corev1.Container) bool { return c.Name == container }) {
		return t.id + lateSuffix
	}
	return t.id
}

// listed is the content of lists at a time.
type listed struct{ live, halted []string }

func (s *Server) runTask(body []byte) (any, error) {
	var in taskRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	cluster, err := s.clusterName(in.Cluster)
	if err != nil {
		return nil, err
	}
	if old := s.tokens[in.ClientToken]; old != nil && in.ClientToken != "" {
		if !bytes.Equal(old.request, body) {
			return nil, refusal{"ConflictException", "The client token was used with other parameters."}
		}
		return map[string]any{"tasks": []any{s.showTask(old, false)}, "failures": []any{}}, nil
	}
	d := s.findDefinition(in.TaskDefinition)
	n := in.NetworkConfiguration
	switch {
	case d == nil:
		return nil, refusal{"ClientException", "TaskDefinition not found."}
	case d.revisionStatus() != active:
		return nil, refusal{"ClientException", "TaskDefinition is inactive"}
	case len(in.ClientToken) > 64 || len(in.StartedBy) > 128 || len(in.Tags) > 50 || in.Count != nil && *in.Count != 1:
		return nil, refusal{"InvalidParameterException", "want a token of at most 64, a startedBy of at most 128 and at most 50 tags, for one task"}
	case n == nil || n.AwsvpcConfiguration == nil || len(n.AwsvpcConfiguration.Subnets) == 0 || len(n.AwsvpcConfiguration.Subnets) > 16 || len(n.AwsvpcConfiguration.SecurityGroups) > 5:
		return nil, refusal{"InvalidParameterException", "Network Configuration must be provided when networkMode 'awsvpc' is specified."}
	}
	for _, r := range taskRules {
		if problem := r.broken(s.config.CapacityProviders, &in); problem != "" {
			return nil, refusal{"InvalidParameterException", problem}
		}
	}
	if problem := d.volumeProblem(in.VolumeConfigurations); problem != "" {
		return nil, refusal{"InvalidParameterException", problem}
	}
	for _, id := range n.AwsvpcConfiguration.Subnets {
		if isMissing(s.config.Subnets, id) {
			return nil, refusal{"InvalidParameterException", "Error retrieving subnet information for [" + id + "]: The subnet ID '" + id + "' does not exist (ErrorCode: InvalidSubnetID.NotFound)"}
		}
	}
	for _, id := range n.AwsvpcConfiguration.SecurityGroups {
		if isMissing(s.config.SecurityGroups, id) {
			return nil, refusal{"InvalidParameterException", "Error retrieving security group information for [" + id + "]: The security group '" + id + "' does not exist (ErrorCode: InvalidGroup.NotFound)"}
		}
	}
	if s.usedVCPUs()+d.vcpuCount() > float64(s.config.VCPUs) {
		return nil, refusal{"ClientException", "You've reached the limit on the number of vCPUs you can run concurrently"}
	}
	if in.EnableExecuteCommand && d.TaskRoleArn == "" {
		return nil, refusal{"InvalidParameterException", "ECS Exec needs a task role."}
	}
	s.last++
	t := &task{
		id: fmt.Sprintf("%032x", s.last), cluster: cluster, startedBy: in.StartedBy, definition: d, request: body, tags: in.Tags, exec: in.EnableExecuteCommand,
		created: time.Now(), pumps: map[string]chan struct{}{}, group: cmp.Or(in.Group, "family:"+d.Family),
	}
	t.arn = s.arnOf("ecs", "task/"+cluster+"/"+t.id)
	if err := s.start(t); err != nil {
		return nil, err
	}
	s.tasks[t.id] = t
	d.users++
	s.order = append(s.order, t.id)
	if len(in.CapacityProviderStrategy) > 0 {
		t.provider = in.CapacityProviderStrategy[0].CapacityProvider
	}
	if in.ClientToken != "" {
		s.tokens[in.ClientToken] = t
	}
	s.sendState(t)
	return map[string]any{"tasks": []any{s.showTask(t, true)}, "failures": []any{}}, nil
}

// usedVCPUs returns the virtual CPUs of all tasks that have not stopped. The caller holds s.mu.
func (s *Server) usedVCPUs() (n float64) {
	for _, t := range s.tasks {
		if t.stopped.IsZero() {
			n += t.definition.vcpuCount()
		}
	}
	return n
}

// findTask returns a task by ID or ARN, or nil if the service does not have the task or does not show it yet. s.mu
// is held.
func (s *Server) findTask(said string) *task {
	id := said[max(0, len(said)-32):]
	t := s.tasks[id]
	if t == nil || time.Since(t.created) < s.config.Lag {
		return nil
	}
	s.settleTask(t)
	if !t.stopped.IsZero() && time.Since(t.stopped) > s.config.Keep {
		s.dropTask(t)
		return nil
	}
	return t
}

// dropTask forgets a task. The caller holds s.mu.
func (s *Server) dropTask(t *task) {
	if t.stopped.IsZero() {
		t.definition.users--
	}
	delete(s.tasks, t.id)
	s.order = slices.DeleteFunc(s.order, func(id string) bool { return id == t.id })
}

func (s *Server) stopTask(body []byte) (any, error) {
	var in struct{ Cluster, Task, Reason string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if _, err := s.clusterName(in.Cluster); err != nil {
		return nil, err
	}
	t := s.findTask(in.Task)
	if t == nil {
		return nil, refusal{"InvalidParameterException", "The referenced task was not found."}
	}
	if len(in.Reason) > 1024 {
		return nil, refusal{"InvalidParameterException", "reason: want at most 1024 characters"}
	}
	t.untagged = true // API_StopTask of the service's reference, read on 2026-11-28: StopTask deletes the tags of the task
	s.haltTask(t, "UserInitiated", in.Reason)
	s.settleTask(t)
	s.sendState(t)
	return map[string]any{"task": s.showTask(t, false)}, nil
}

func (s *Server) listTasks(body []byte) (any, error) {
	var in struct {
		Cluster, StartedBy, DesiredStatus, Family, LaunchType, NextToken string
		MaxResults                                                       *int
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if _, err := s.clusterName(in.Cluster); err != nil {
		return nil, err
	}
	if in.StartedBy != "" && (in.DesiredStatus != "" || in.Family != "" || in.LaunchType != "") {
		return nil, refusal{"InvalidParameterException", "startedBy must be the only filter"}
	}
	all := s.sortTasks()
	if s.stale != nil {
		all = *s.stale
	}
	from := all.live
	if in.DesiredStatus == "STOPPED" {
		from = all.halted
	}
	arns := []string{}
	for _, id := range from {
		if t := s.tasks[id]; t != nil && (in.StartedBy == "" || t.startedBy == in.StartedBy) {
			arns = append(arns, t.arn)
		}
	}
	page := 100
	if in.MaxResults != nil {
		page = min(100, max(1, *in.MaxResults))
	}
	begin, _ := strconv.Atoi(in.NextToken)
	begin = min(begin, len(arns))
	end := min(begin+page, len(arns))
	out := map[string]any{"taskArns": arns[begin:end]}
	if end < len(arns) {
		out["nextToken"] = strconv.Itoa(end)
	}
	return out, nil
}

// sortTasks returns the tasks whose desired status is to run, and the tasks whose desired status is to stop. s.mu is
// held.
func (s *Server) sortTasks() (all listed) {
	for _, id := range slices.Clone(s.order) {
		t := s.findTask(id)
		switch {
		case t == nil:
		case t.stopping.IsZero():
			all.live = append(all.live, id)
		default:
			all.halted = append(all.halted, id)
		}
	}
	return all
}

func (s *Server) describeTasks(body []byte) (any, error) {
	var in struct {
		Cluster        string
		Tasks, Include []string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	name, err := s.clusterName(in.Cluster)
	if err != nil {
		return nil, err
	}
	if len(in.Tasks) == 0 || len(in.Tasks) > 100 {
		return nil, refusal{"InvalidParameterException", "Tasks cannot be empty, and are at most 100."}
	}
	tasks, failures := []any{}, []any{}
	for _, said := range in.Tasks {
		if _, where, is := strings.Cut(said, ":task/"); is {
			if of, _, _ := strings.Cut(where, "/"); of != name {
				return nil, refusal{"InvalidParameterException", "Invalid identifier: Identifier is for cluster " + of + ". Your cluster is " + name}
			}
		}
		if t := s.findTask(said); t != nil {
			tasks = append(tasks, s.showTask(t, slices.Contains(in.Include, "TAGS")))
		} else {
			failures = append(failures, map[string]string{"arn": said, "reason": "MISSING"})
		}
	}
	return map[string]any{"tasks": tasks, "failures": failures}, nil
}
