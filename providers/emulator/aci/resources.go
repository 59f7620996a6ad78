// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Limit bounds the number of requests of operations in a time. Further requests get a 429 with a time for the
// next try.
type Limit struct {
	Operations []string
	Requests   int
	Per        time.Duration
}

// window counts the requests since a time.
type window struct {
	since time.Time
	n     int
}

// tooMany counts a request, and returns the time to wait if the request is over a limit, else 0.
func (s *Server) tooMany(operation string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, limit := range s.Limits {
		if !slices.Contains(limit.Operations, operation) {
			continue
		}
		in := s.windows[i]
		if in == nil || now.Sub(in.since) >= limit.Per {
			in = &window{since: now}
			s.windows[i] = in
		}
		if in.n++; in.n > limit.Requests {
			return limit.Per - now.Sub(in.since)
		}
	}
	return 0
}

// answerSubnet shows a subnet. It accepts a change that delegates the subnet to container groups.
func (s *Server) answerSubnet(w http.ResponseWriter, r *http.Request) {
	action := ActionSubnet
	if r.Method != http.MethodGet {
		action = ActionDelegate
	}
	id := r.URL.Path
	delegated := slices.ContainsFunc(s.Subnets, func(other string) bool { return strings.EqualFold(other, id) })
	switch {
	case !s.mayDo(action):
		forbidAction(w, action)
	case !delegated && !slices.ContainsFunc(s.Plain, func(other string) bool { return strings.EqualFold(other, id) }):
		refuseRequest(w, http.StatusNotFound, "NotFound", "Resource "+id+" not found.")
	default:
		to := []any{}
		if delegated {
			to = append(to, map[string]any{"name": "aci", "properties": map[string]any{"serviceName": "Microsoft.ContainerInstance/containerGroups", "provisioningState": "Succeeded"}})
		}
		answerJSON(w, http.StatusOK, map[string]any{"id": id, "name": id[strings.LastIndex(id, "/")+1:], "properties": map[string]any{
			"provisioningState": "Succeeded", "addressPrefix": "10.240.0.0/16", "delegations": to,
		}})
	}
}

func forbidAction(w http.ResponseWriter, action string) {
	refuseRequest(w, http.StatusForbidden, "AuthorizationFailed", "The client does not have authorization to perform action '"+action+"'.")
}

// answerUsages shows the quota of a region.
func (s *Server) answerUsages(w http.ResponseWriter, r *http.Request, region string) {
	switch {
	case !s.mayDo(ActionUsage):
		forbidAction(w, ActionUsage)
	case !s.knowsVersion(r):
		refuseRequest(w, http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version is invalid.")
	case region != s.place.Region:
		refuseRequest(w, http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '"+region+"' is not available.")
	default:
		s.mu.Lock()
		n := len(s.groups)
		s.mu.Unlock()
		limit := s.Quota
		if limit == 0 {
			limit = 10000
		}
		answerJSON(w, http.StatusOK, map[string]any{"value": []any{map[string]any{
			"unit": "Count", "currentValue": n, "limit": limit, "name": map[string]string{"value": "ContainerGroups", "localizedValue": "Container Groups"},
		}}})
	}
}

// answerOperation reports every operation as finished: the group shows the progress.
func (s *Server) answerOperation(w http.ResponseWriter, r *http.Request, id string) {
	if !s.mayDo(ActionStatus) {
		forbidAction(w, ActionStatus)
		return
	}
	answerJSON(w, http.StatusOK, map[string]any{"id": r.URL.Path, "name": id, "status": "Succeeded"})
}

// metricNames are the names of the metrics of a batch.
var metricNames = []string{"CpuUsage", "MemoryUsage"}

// maxBatch is the maximum number of resources in a batch.
const maxBatch = 50

// answerMetrics answers with the usage of the containers of several groups at once.
func (s *Server) answerMetrics(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var asked struct {
		IDs []string `json:"resourceids"`
	}
	bad := func(why string) { refuseRequest(w, http.StatusBadRequest, "BadRequest", why) }
	switch {
	case !s.mayDo(ActionMetrics):
		forbidAction(w, ActionMetrics)
		return
	case r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil:
		bad("want a POST with resourceids")
		return
	case q.Get("api-version") != "2023-10-01" || q.Get("metricnamespace") != "microsoft.containerinstance/containergroups":
		bad("want api-version 2023-10-01 and the namespace of container groups")
		return
	case len(asked.IDs) == 0 || len(asked.IDs) > maxBatch:
		bad("want 1 to 50 resources")
		return
	case q.Get("filter") != "containerName eq '*'" || q.Get("aggregation") != "average" || q.Get("interval") != "PT1M":
		bad("want the average of a minute, by container")
		return
	}
	for _, name := range strings.Split(q.Get("metricnames"), ",") {
		if !slices.Contains(metricNames, name) {
			bad("metric " + name + " is not known")
			return
		}
	}
	values := []any{}
	for _, id := range asked.IDs {
		g := s.findGroup(id[strings.LastIndex(id, "/")+1:])
		if g == nil {
			refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "Resource "+id+" was not found.")
			return
		}
		runner, namespace, name := s.fleet.Runner(s.idOf(g))
		summary, err := runner.GetStatsSummary(r.Context())
		if err != nil {
			refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
			return
		}
		cpu, memory := []any{}, []any{}
		for _, pod := range summary.Pods {
			if pod.PodRef.Namespace == namespace && pod.PodRef.Name == name {
				for _, c := range pod.Containers {
					cpu, memory = append(cpu, seriesOf(c.Name, millicoresOf(c.CPU))), append(memory, seriesOf(c.Name, bytesOf(c.Memory)))
				}
			}
		}
		values = append(values, map[string]any{"resourceid": id, "interval": "PT1M", "namespace": q.Get("metricnamespace"), "value": []any{
			map[string]any{"name": map[string]string{"value": "CpuUsage"}, "unit": "MilliCores", "timeseries": cpu},
			map[string]any{"name": map[string]string{"value": "MemoryUsage"}, "unit": "Bytes", "timeseries": memory},
		}})
	}
	answerJSON(w, http.StatusOK, map[string]any{"values": values})
}

func millicoresOf(s *statsv1alpha1.CPUStats) float64 {
	if s == nil || s.UsageNanoCores == nil {
		return 0
	}
	return float64(*s.UsageNanoCores) / 1e6
}

func bytesOf(s *statsv1alpha1.MemoryStats) float64 {
	if s == nil || s.WorkingSetBytes == nil {
		return 0
	}
	return float64(*s.WorkingSetBytes)
}

// seriesOf returns the series of one container. The last minute has no value yet.
func seriesOf(container string, average float64) map[string]any {
	now := time.Now().UTC().Truncate(time.Minute)
	return map[string]any{
		"metadatavalues": []any{map[string]any{"name": map[string]string{"value": "containername"}, "value": container}},
		"data": []any{
			map[string]any{"timeStamp": now.Add(-time.Minute).Format(time.RFC3339), "average": average}, map[string]any{"timeStamp": now.Format(time.RFC3339)},
		},
	}
}
