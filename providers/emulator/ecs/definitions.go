// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// definition is a revision of a task definition.
type definition struct {
	Family, CPU, Memory, NetworkMode, ExecutionRoleArn, TaskRoleArn string
	RequiresCompatibilities                                         []string
	Volumes                                                         []volume
	EphemeralStorage                                                *struct{ SizeInGiB int }
	ContainerDefinitions                                            []containerDefinition

	arn   string
	size  int // in bytes
	raw   map[string]any
	tags  any
	users int // number of tasks that have not stopped
}

type volume struct {
	Name                   string
	ConfiguredAtLaunch     bool
	EfsVolumeConfiguration *struct {
		FileSystemID        string `json:"fileSystemId"`
		RootDirectory       string
		TransitEncryption   string
		AuthorizationConfig *struct{ AccessPointID, Iam string }
	}
}

type pair struct{ Name, Value string }

type containerDefinition struct {
	Name, Image, User   string
	WorkingDirectory    *string
	EntryPoint, Command []string
	PortMappings        []struct {
		ContainerPort, HostPort int
		Protocol                string
	}
	Environment []pair
	Secrets     []struct{ Name, ValueFrom string }
	Essential   *bool
	DependsOn   []struct{ ContainerName, Condition string }
	MountPoints []struct {
		SourceVolume, ContainerPath string
		ReadOnly                    bool
	}
	RestartPolicy *struct {
		Enabled              bool
		IgnoredExitCodes     []int32
		RestartAttemptPeriod *int
	}
	HealthCheck *struct {
		Command                                 []string
		Interval, Timeout, Retries, StartPeriod int32
	}
	LogConfiguration *struct {
		LogDriver string
		Options   map[string]string
	}
	StopTimeout                    *int
	CPU, Memory, MemoryReservation int
	ReadonlyRootFilesystem         bool
	LinuxParameters                *struct{ Capabilities struct{ Add, Drop []string } }
}

func (d *definition) vcpuCount() float64 {
	n, _ := strconv.Atoi(d.CPU) // check has validated the number
	return float64(n) / 1024
}

func (c containerDefinition) isEssential() bool { return c.Essential == nil || *c.Essential }

// waitsForEnd reports whether a container waits for the end of the named container, whatever its exit code.
func (d *definition) waitsForEnd(name string) bool {
	return slices.ContainsFunc(d.ContainerDefinitions, func(c containerDefinition) bool {
		return slices.ContainsFunc(c.DependsOn, func(d struct{ ContainerName, Condition string }) bool {
			return d.ContainerName == name && d.Condition == "COMPLETE"
		})
	})
}

// memory are the sizes of a task in MiB, by CPU: minimum, maximum and step.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-cpu-memory-error.html, read on 2026-11-24.
var memory = map[string][3]int{
	"512": {1024, 4096, 1024}, "1024": {2048, 8192, 1024}, "2048": {4096, 16384, 1024}, "4096": {8192, 30720, 1024},
	"8192": {16384, 61440, 4096}, "16384": {32768, 122880, 8192},
}

// hasSize reports whether Fargate has a size.
func hasSize(cpu, mib string) bool {
	if cpu == "256" {
		return slices.Contains([]string{"512", "1024", "2048"}, mib)
	}
	n, err := strconv.Atoi(mib)
	m, ok := memory[cpu]
	return ok && err == nil && n >= m[0] && n <= m[1] && (n-m[0])%m[2] == 0
}

// checkRules refuses a definition for the reasons of ECS that are not in the shapes.
func (d *definition) checkRules() error {
	wrong := func(format string, args ...any) error {
		return refusal{"ClientException", fmt.Sprintf(format, args...)}
	}
	for _, r := range rules {
		if problem := r.broken(d); problem != "" {
			return wrong("%s", problem)
		}
	}
	if !slices.ContainsFunc(d.ContainerDefinitions, containerDefinition.isEssential) {
		return wrong("a task definition must have at least one essential container")
	}
	for _, v := range d.Volumes {
		if e := v.EfsVolumeConfiguration; e != nil && !strings.HasPrefix(e.FileSystemID, "fs-") {
			return wrong("volume %s: want the ID of a file system", v.Name)
		}
	}
	names := []string{}
	for _, c := range d.ContainerDefinitions {
		names = append(names, c.Name)
	}
	for i, c := range d.ContainerDefinitions {
		switch {
		case c.Name == "" || c.Image == "" || slices.Index(names, c.Name) != i:
			return wrong("container %q: want a name of its own, and an image", c.Name)
		case c.StopTimeout != nil && (*c.StopTimeout < 0 || *c.StopTimeout > 120):
			return wrong("container %s: stopTimeout: %d: want at most 120", c.Name, *c.StopTimeout)
		case c.Memory != 0 && (c.Memory < 6 || c.MemoryReservation >= c.Memory):
			return wrong("container %s: memory: want at least 6, and more than memoryReservation", c.Name)
		}
		if p := c.RestartPolicy; p != nil && p.RestartAttemptPeriod != nil && (*p.RestartAttemptPeriod < 60 || *p.RestartAttemptPeriod > 1800) {
			return wrong("container %s: restartAttemptPeriod: want 60 to 1800", c.Name)
		}
		for _, dep := range c.DependsOn {
			if at := slices.Index(names, dep.ContainerName); at < 0 || at == i {
				return wrong("container %s: dependsOn: there is no container %s", c.Name, dep.ContainerName)
			}
		}
	}
	return nil
}

// volumeProblem returns the problem of a volume that is not configured as its definition requires, or "".
func (d *definition) volumeProblem(at []volumeConfiguration) string {
	for _, v := range d.Volumes {
		if has := slices.ContainsFunc(at, func(c volumeConfiguration) bool { return c.Name == v.Name }); has != v.ConfiguredAtLaunch {
			return "The volume configurations must name the volumes that are configured at launch, and no others: " + v.Name
		}
	}
	for _, c := range at {
		if !slices.ContainsFunc(d.Volumes, func(v volume) bool { return v.Name == c.Name }) {
			return "The task definition has no volume " + c.Name
		}
	}
	return ""
}

// The states of a revision of a task definition.
const (
	active   = "ACTIVE"
	inactive = "INACTIVE"
	deleting = "DELETE_IN_PROGRESS"
)

func (s *Server) registerTaskDefinition(body []byte) (any, error) {
	d := &definition{size: len(body)}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, err
	}
	if err := d.checkRules(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &d.raw); err != nil {
		return nil, err
	}
	d.tags = d.raw["tags"]
	delete(d.raw, "tags")
	if len(s.definitions[d.Family]) >= s.config.Revisions {
		return nil, refusal{"ClientException", "Too many revisions of the task definition family."}
	}
	revisions := append(s.definitions[d.Family], d)
	s.definitions[d.Family] = revisions
	d.arn = s.arnOf("ecs", "task-definition/"+d.Family+":"+strconv.Itoa(len(revisions)))
	d.raw["taskDefinitionArn"], d.raw["revision"], d.raw["status"], d.raw["registeredAt"] = d.arn, len(revisions), active, unixTime(time.Now())
	return map[string]any{"taskDefinition": d.raw}, nil
}

// unixTime returns a time in the form of the service.
func unixTime(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// revisionStatus returns the state of a revision.
func (d *definition) revisionStatus() string { return d.raw["status"].(string) }

// findDefinition finds a definition by its family, by family and revision, or by ARN. A family alone means its
// newest active revision. The caller holds s.mu.
func (s *Server) findDefinition(said string) *definition {
	s.purgeDefinitions()
	name := said[strings.LastIndex(said, "/")+1:]
	family, revision, _ := strings.Cut(name, ":")
	revisions := s.definitions[family]
	if revision == "" {
		for _, d := range slices.Backward(revisions) {
			if d != nil && d.revisionStatus() == active {
				return d
			}
		}
		return nil
	}
	n, _ := strconv.Atoi(revision)
	if n < 1 || n > len(revisions) {
		return nil
	}
	return revisions[n-1]
}

func (s *Server) describeTaskDefinition(body []byte) (any, error) {
	var in struct {
		TaskDefinition string
		Include        []string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	d := s.findDefinition(in.TaskDefinition)
	if d == nil {
		return nil, refusal{"ClientException", "Unable to describe task definition."}
	}
	out := map[string]any{"taskDefinition": d.raw}
	if slices.Contains(in.Include, "TAGS") {
		out["tags"] = d.tags
	}
	return out, nil
}

func (s *Server) deregisterTaskDefinition(body []byte) (any, error) {
	var in struct{ TaskDefinition string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if !strings.Contains(in.TaskDefinition[strings.LastIndex(in.TaskDefinition, "/")+1:], ":") {
		return nil, refusal{"ClientException", "Unable to describe task definition: want family and revision."}
	}
	d := s.findDefinition(in.TaskDefinition)
	switch {
	case d == nil:
		return nil, refusal{"ClientException", "Unable to describe task definition."}
	case d.revisionStatus() != active:
		return nil, refusal{"ClientException", "The specified task definition is inactive. You can only deregister active task definitions."}
	}
	d.raw["status"], d.raw["deregisteredAt"] = inactive, unixTime(time.Now())
	return map[string]any{"taskDefinition": d.raw}, nil
}

// deleteTaskDefinitions removes inactive revisions. By API_DeleteTaskDefinitions of the service's reference,
// read on 2026-11-28, it takes at most ten. A revision stays as long as a task uses it. The name of a family is
// kept, so its next revision has the next number.
func (s *Server) deleteTaskDefinitions(body []byte) (any, error) {
	var in struct{ TaskDefinitions []string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if n := len(in.TaskDefinitions); n < 1 || n > 10 {
		return nil, refusal{"InvalidParameterException", "Specify 1 to 10 task definitions."}
	}
	done, failures := []any{}, []any{}
	fail := func(arn, reason string) { failures = append(failures, map[string]string{"arn": arn, "reason": reason}) }
	for _, said := range in.TaskDefinitions {
		d := s.findDefinition(said)
		switch {
		case !strings.Contains(said[strings.LastIndex(said, "/")+1:], ":"), d == nil:
			fail(said, "The specified task definition does not exist. Specify a valid account, family, revision and try again.")
		case d.revisionStatus() == active:
			fail(said, "The specified task definition is still in ACTIVE status. Please deregister the target and try again.")
		default:
			d.raw["status"] = deleting
			done = append(done, d.raw)
		}
	}
	s.purgeDefinitions()
	return map[string]any{"taskDefinitions": done, "failures": failures}, nil
}

// purgeDefinitions forgets deleted revisions without tasks. The caller holds s.mu.
func (s *Server) purgeDefinitions() {
	for _, revisions := range s.definitions {
		for i, d := range revisions {
			if d != nil && d.revisionStatus() == deleting && d.users == 0 {
				revisions[i] = nil
			}
		}
	}
}

// pageOf returns a page of a list, and the token for the next one.
func pageOf(all []string, token string, size *int, most int) (page []string, next string) {
	if size != nil {
		most = min(most, max(1, *size))
	}
	begin, _ := strconv.Atoi(token)
	begin = min(begin, len(all))
	end := min(begin+most, len(all))
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return all[begin:end:end], next
}

// listTaskDefinitionFamilies lists families by a prefix of their names. A family with revisions in
// DELETE_IN_PROGRESS alone is listed as inactive.
func (s *Server) listTaskDefinitionFamilies(body []byte) (any, error) {
	var in struct {
		FamilyPrefix, Status, NextToken string
		MaxResults                      *int
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s.purgeDefinitions()
	names := []string{}
	for family, revisions := range s.definitions {
		revisions = slices.DeleteFunc(slices.Clone(revisions), func(d *definition) bool { return d == nil })
		if !strings.HasPrefix(family, in.FamilyPrefix) || len(revisions) == 0 {
			continue
		}
		of := inactive
		if slices.ContainsFunc(revisions, func(d *definition) bool { return d.revisionStatus() == active }) {
			of = active
		}
		if in.Status == "" || in.Status == "ALL" || in.Status == of {
			names = append(names, family)
		}
	}
	slices.Sort(names)
	page, next := pageOf(names, in.NextToken, in.MaxResults, 100)
	out := map[string]any{"families": page}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

// listTaskDefinitions lists the revisions of all families, or of the family with the full name familyPrefix.
func (s *Server) listTaskDefinitions(body []byte) (any, error) {
	var in struct {
		FamilyPrefix, Status, NextToken string
		MaxResults                      *int
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s.purgeDefinitions()
	arns := []string{}
	for family, revisions := range s.definitions {
		for _, d := range revisions {
			if d != nil && (in.FamilyPrefix == "" || family == in.FamilyPrefix) && d.revisionStatus() == cmp.Or(in.Status, active) {
				arns = append(arns, d.arn)
			}
		}
	}
	slices.Sort(arns)
	page, next := pageOf(arns, in.NextToken, in.MaxResults, 100)
	out := map[string]any{"taskDefinitionArns": page}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}
