// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// shown is a group as lists show it now.
type shown struct {
	*group
	seen  emulator.Seen
	again bool // the group is being restarted
}

// list returns the groups of a request. It removes groups whose containers have gone.
func (s *Server) list(r *http.Request, form url.Values) (out []shown, err error) {
	f := fields(form)
	var ids []string
	if text := f.textOf("ContainerGroupIds"); text != "" {
		if err := json.Unmarshal([]byte(text), &ids); err != nil || len(ids) > maxParts {
			return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "ContainerGroupIds: want a JSON array of %d at most", maxParts)
		}
	}
	if err := s.startAgain(r.Context()); err != nil {
		return nil, err
	}
	all, err := s.Fleet.List(r.Context())
	if err != nil {
		return nil, err
	}
	runs := map[string]emulator.Seen{}
	for _, seen := range all {
		runs[seen.ID] = seen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = slices.DeleteFunc(s.groups, func(g *group) bool {
		_, err := s.Fleet.Get(r.Context(), g.run)
		return errdefs.IsNotFound(err) && !g.again && time.Since(g.created) > time.Second // a new group may not be in the fleet yet
	})
	for _, g := range s.groups {
		seen, there := runs[g.run]
		again := g.again || !there && g.restarts > 0
		if !there && !again || ids != nil && !slices.Contains(ids, g.id) || f.hasField("ContainerGroupName") && g.name != f.textOf("ContainerGroupName") {
			continue
		}
		if slices.ContainsFunc(f.list("Tag"), func(t fields) bool { return g.tags[t.textOf("Key")] != t.textOf("Value") }) {
			continue
		}
		if since := f.numberOf("SinceSecond"); since > 0 && time.Since(g.changed) > time.Duration(since)*time.Second {
			continue
		}
		out = append(out, shown{g, seen, again})
	}
	return out, nil
}

// pageOf cuts a list.
func pageOf(form url.Values, all []object, most int) (some []object, next string) {
	f := fields(form)
	if n := int(f.numberOf("Limit")); n > 0 && n < most {
		most = n
	}
	from, _ := strconv.Atoi(f.textOf("NextToken"))
	from = min(max(from, 0), len(all))
	to := min(from+most, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next
}

// answerStatuses answers DescribeContainerGroupStatus.
func (s *Server) answerStatuses(r *http.Request, form url.Values) (object, error) {
	all, err := s.list(r, form)
	if err != nil {
		return nil, err
	}
	out := []object{}
	for _, g := range all {
		out = append(out, g.groupState())
	}
	some, next := pageOf(form, out, 200)
	return object{"Data": some, "NextToken": next, "TotalCount": len(out)}, nil
}

// answerGroups answers DescribeContainerGroups.
func (s *Server) answerGroups(r *http.Request, form url.Values) (object, error) {
	all, err := s.list(r, form)
	if err != nil {
		return nil, err
	}
	out := []object{}
	for _, g := range all {
		var tags, inits []object
		for key, value := range g.tags {
			tags = append(tags, object{"Key": key, "Value": value})
		}
		for _, c := range g.seen.Status.InitContainerStatuses {
			inits = append(inits, object{
				"Name": c.Name, "Ready": c.Ready, "RestartCount": c.RestartCount, "CurrentState": describeState(c.State), "PreviousState": describeState(c.LastTerminationState),
			})
		}
		out = append(out, object{
			"ContainerGroupId": g.id, "ContainerGroupName": g.name, "Status": g.groupStatus(), "RegionId": s.Region,
			"CreationTime": formatTime(g.created), "Tags": tags, "InitContainers": inits,
		})
	}
	some, next := pageOf(form, out, 20)
	return object{"ContainerGroups": some, "NextToken": next, "TotalCount": len(out)}, nil
}

// groupStatus returns the state of a group.
func (g shown) groupStatus() string {
	switch {
	case g.again:
		return "Restarting"
	case !g.seen.DeletedAt.IsZero():
		return "Terminating"
	case g.seen.Status.Phase == "":
		return "Scheduling"
	}
	return string(g.seen.Status.Phase)
}

// groupState returns the state of a group in a list of states.
func (g shown) groupState() object {
	var containers, ips []object
	phase := g.seen.Status.Phase
	if g.again {
		phase = corev1.PodPending
		if g.seen.Gone || g.seen.ID == "" {
			g.seen.Status.ContainerStatuses = nil
			for _, c := range g.spec.Containers {
				g.seen.Status.ContainerStatuses = append(g.seen.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
				})
			}
		}
	}
	for _, c := range g.seen.Status.ContainerStatuses {
		containers = append(containers, object{
			"Name": c.Name, "Image": c.Image, "ImageID": c.ImageID, "Ready": c.Ready, "Started": c.Started, "RestartCount": c.RestartCount,
			"State": stateOf(c.State), "LastState": stateOf(c.LastTerminationState),
		})
	}
	for _, ip := range g.seen.Status.PodIPs {
		ips = append(ips, object{"Ip": ip.IP})
	}
	status := object{
		"Phase": phase, "PodIp": g.seen.Status.PodIP, "PodIps": ips, "HostIp": g.seen.Status.HostIP, "ContainerStatuses": containers,
	}
	if t := g.seen.Status.StartTime; t != nil {
		status["StartTime"] = formatTime(t.Time)
	}
	return object{"ContainerGroupId": g.id, "Name": g.name, "Status": g.groupStatus(), "PodStatus": status}
}

func stateOf(s corev1.ContainerState) object {
	out := object{}
	if w := s.Waiting; w != nil {
		out["Waiting"] = object{"Reason": w.Reason, "Message": w.Message}
	}
	if r := s.Running; r != nil {
		out["Running"] = object{"StartedAtstartedAt": formatTime(r.StartedAt.Time)} // the service's own spelling
	}
	if t := s.Terminated; t != nil {
		out["Terminated"] = object{
			"ExitCode": t.ExitCode, "Signal": t.Signal, "Reason": t.Reason, "Message": t.Message, "ContainerID": t.ContainerID,
			"StartedAt": stampOf(t.StartedAt), "FinishedAt": stampOf(t.FinishedAt),
		}
	}
	return out
}

// describeState returns a state in the form of DescribeContainerGroups.
func describeState(s corev1.ContainerState) object {
	switch {
	case s.Terminated != nil:
		t := s.Terminated
		return object{
			"State": "Terminated", "ExitCode": t.ExitCode, "Reason": t.Reason, "Message": t.Message, "DetailStatus": t.Reason,
			"StartTime": stampOf(t.StartedAt), "FinishTime": stampOf(t.FinishedAt),
		}
	case s.Running != nil:
		return object{"State": "Running", "StartTime": stampOf(s.Running.StartedAt)}
	case s.Waiting != nil:
		return object{"State": "Waiting", "Reason": s.Waiting.Reason, "Message": s.Waiting.Message}
	}
	return object{}
}

func stampOf(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t.Time)
}

// formatTime formats a time like the service, to the second.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// maxMetrics is the maximum number of groups in a request:
// alibabacloud.com/help/en/eci/developer-reference/api-eci-2018-08-08-describemulticontainergroupmetric,
// 2025-10-17.
const maxMetrics = 20

// answerMetrics returns the newest record of each group. The answer has the names of the vendor's client (npm
// @alicloud/eci20180808 2.0.3).
func (s *Server) answerMetrics(r *http.Request, form url.Values) (object, error) {
	var ids []string
	if err := json.Unmarshal([]byte(form.Get("ContainerGroupIds")), &ids); err != nil || len(ids) == 0 || len(ids) > maxMetrics {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "ContainerGroupIds: want a JSON list of 1 to %d", maxMetrics)
	}
	out := []object{}
	for _, id := range ids {
		s.mu.Lock()
		there := s.byID(id) != nil
		s.mu.Unlock()
		if !there {
			continue
		}
		runner, namespace, name := s.Fleet.Runner(s.Run(id))
		summary, err := runner.GetStatsSummary(r.Context())
		if err != nil {
			return nil, err
		}
		for _, pod := range summary.Pods {
			if pod.PodRef.Namespace != namespace || pod.PodRef.Name != name {
				continue
			}
			containers := []object{}
			for _, c := range pod.Containers {
				containers = append(containers, object{"Name": c.Name, "CPU": cpuOf(c.CPU), "Memory": memoryOf(c.Memory)})
			}
			out = append(out, object{"ContainerGroupId": id, "Records": []object{{
				"Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05Z"), "CPU": cpuOf(pod.CPU), "Memory": memoryOf(pod.Memory), "Containers": containers,
				"Network": object{"Interfaces": []object{{"Name": "eth0", "RxBytes": 1, "TxBytes": 2}}},
			}}})
		}
	}
	return object{"MonitorDatas": out}, nil
}

func cpuOf(c *statsv1alpha1.CPUStats) object {
	if c == nil {
		return object{}
	}
	return object{"UsageNanoCores": c.UsageNanoCores, "UsageCoreNanoSeconds": c.UsageCoreNanoSeconds, "Load": 0, "Limit": 1000}
}

func memoryOf(m *statsv1alpha1.MemoryStats) object {
	if m == nil {
		return object{}
	}
	return object{"AvailableBytes": m.AvailableBytes, "UsageBytes": m.UsageBytes, "WorkingSet": m.WorkingSetBytes, "Rss": m.RSSBytes, "Cache": 0}
}
