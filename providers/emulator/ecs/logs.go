// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"bufio"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// stream is a log stream.
type stream struct{ events []event }

type event struct {
	Timestamp     int64  `json:"timestamp"`
	Message       string `json:"message"`
	IngestionTime int64  `json:"ingestionTime"`
}

// pumpLogs begins to copy the log of each new run. The caller holds s.mu.
func (s *Server) pumpLogs(t *task) {
	for _, c := range t.definition.ContainerDefinitions {
		l, k := c.LogConfiguration, t.containerStatus(c.Name)
		if l == nil || l.LogDriver != "awslogs" || k == nil || k.ContainerID == "" || k.State.Waiting != nil || !slices.Contains(s.config.LogGroups, l.Options["awslogs-group"]) {
			continue
		}
		run := c.Name + "/" + k.ContainerID
		if t.pumps[run] != nil {
			continue
		}
		done := make(chan struct{})
		t.pumps[run] = done
		name := l.Options["awslogs-group"] + ":" + l.Options["awslogs-stream-prefix"] + "/" + c.Name + "/" + t.id
		if s.streams[name] == nil {
			s.streams[name] = &stream{}
		}
		go s.copyLog(t, c.Name, s.streams[name], done)
	}
}

// copyLog reads the log of a run to its end.
func (s *Server) copyLog(t *task, container string, to *stream, done chan struct{}) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(done)
		s.settleTask(t)
		s.sendState(t)
	}()
	runner, namespace, name := s.fleet.Runner(t.groupOf(container))
	log, err := runner.GetContainerLogs(s.ctx, namespace, name, container, api.ContainerLogOpts{Follow: true, Timestamps: true})
	if err != nil {
		return
	}
	defer log.Close() // an error of Close has no effect after reading
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		stamp, text, _ := strings.Cut(lines.Text(), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			continue
		}
		s.mu.Lock()
		to.events = append(to.events, event{at.UnixMilli(), text, time.Now().UnixMilli()})
		s.mu.Unlock()
	}
}

// describeLogGroups answers with the groups with a prefix, in the order of their names. A group with permanent
// events has no retentionInDays:
// docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_DescribeLogGroups.html and API_LogGroup.html,
// 2026-11-28.
func (s *Server) describeLogGroups(body []byte) (any, error) {
	var in struct{ LogGroupNamePrefix string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	found := []map[string]any{}
	for _, name := range slices.Sorted(slices.Values(s.config.LogGroups)) {
		if strings.HasPrefix(name, in.LogGroupNamePrefix) {
			group := map[string]any{"logGroupName": name, "logGroupClass": "STANDARD"}
			if days := s.config.Retention[name]; days > 0 {
				group["retentionInDays"] = days
			}
			found = append(found, group)
		}
	}
	return map[string]any{"logGroups": found}, nil
}

func (s *Server) getLogEvents(body []byte) (any, error) {
	var in struct {
		LogGroupName, LogStreamName, NextToken string
		StartTime, EndTime                     *int64
		Limit                                  *int
		StartFromHead                          bool
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if !slices.Contains(s.config.LogGroups, in.LogGroupName) {
		return nil, refusal{"ResourceNotFoundException", "The specified log group does not exist."}
	}
	from := s.streams[in.LogGroupName+":"+in.LogStreamName]
	if from == nil {
		return nil, refusal{"ResourceNotFoundException", "The specified log stream does not exist."}
	}
	if !in.StartFromHead {
		return nil, refusal{"InvalidParameterException", "this server reads from the head alone"}
	}
	page := 10000
	if in.Limit != nil {
		page = min(page, *in.Limit)
	}
	begin, _ := strconv.Atoi(strings.TrimPrefix(in.NextToken, "f/"))
	events := []event{}
	next, size := begin, 0
	for _, e := range from.events[min(begin, len(from.events)):] {
		if size += len(e.Message) + 26; len(events) == page || size > 1<<20 {
			break
		}
		next++
		if (in.StartTime == nil || e.Timestamp >= *in.StartTime) && (in.EndTime == nil || e.Timestamp < *in.EndTime) {
			events = append(events, e)
		}
	}
	return map[string]any{"events": events, "nextForwardToken": "f/" + strconv.Itoa(next), "nextBackwardToken": "b/" + strconv.Itoa(begin)}, nil
}

// Log returns the output of a container of a task, for tests.
func (s *Server) Log(group, name string) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from := s.streams[group+":"+name]; from != nil {
		for _, e := range from.events {
			lines = append(lines, e.Message)
		}
	}
	return lines
}

// filterLogEvents returns the events of Container Insights. This server filters nothing else:
// docs.aws.amazon.com: Container-Insights-reference-performance-logs-ECS.html, read on 2026-11-28.
func (s *Server) filterLogEvents(ctx context.Context, body []byte) (any, error) {
	var in struct {
		LogGroupName, FilterPattern string
		StartTime                   int64
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	summary, err := s.config.Runner.GetStatsSummary(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cluster, found := strings.CutPrefix(in.LogGroupName, "/aws/ecs/containerinsights/")
	cluster, inside := strings.CutSuffix(cluster, "/performance")
	if _, err := s.clusterName(cluster); err != nil || !found || !inside {
		return nil, refusal{"ResourceNotFoundException", "The specified log group does not exist."}
	}
	if in.FilterPattern != `{ $.Type = "Container" }` {
		return nil, refusal{"InvalidParameterException", "this server filters events of containers alone"}
	}
	events := []event{}
	for _, pod := range summary.Pods {
		id, _ := strings.CutSuffix(pod.PodRef.Name, lateSuffix)
		if s.tasks[id] == nil {
			continue
		}
		for _, c := range pod.Containers {
			said := map[string]any{"Version": "0", "Type": "Container", "ContainerName": c.Name, "TaskId": id, "ClusterName": cluster, "Timestamp": time.Now().UnixMilli(), "CpuUtilized": 0.5, "MemoryUtilized": 3}
			if c.CPU != nil && c.CPU.UsageNanoCores != nil {
				said["CpuUtilized"] = float64(*c.CPU.UsageNanoCores) / 1e9 * 1024
			}
			if c.Memory != nil && c.Memory.WorkingSetBytes != nil {
				said["MemoryUtilized"] = float64(*c.Memory.WorkingSetBytes) / (1 << 20)
			}
			text, err := json.Marshal(said)
			if err != nil {
				return nil, err
			}
			events = append(events, event{time.Now().UnixMilli(), string(text), time.Now().UnixMilli()})
		}
	}
	return map[string]any{"events": events}, nil
}
