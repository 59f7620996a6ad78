// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// group is a group of the service.
type group struct {
	name    string
	id      string // in the fleet
	asked   Request
	shows   map[string]any // the request, without secrets
	created time.Time
	failed  string // why the group could not be started
	ending  bool   // its deletion was requested
	stopped bool   // a stop was requested
	again   bool   // the group starts again after its end
	events  map[string]event
}

// Request is the part of a create request that the server reads.
type Request struct {
	Location string   `json:"location"`
	Zones    []string `json:"zones"`
	Identity *struct {
		Type                   string         `json:"type"`
		UserAssignedIdentities map[string]any `json:"userAssignedIdentities"`
	} `json:"identity"`
	Properties struct {
		Containers               []container `json:"containers"`
		InitContainers           []container `json:"initContainers"`
		Volumes                  []volume    `json:"volumes"`
		ImageRegistryCredentials []login     `json:"imageRegistryCredentials"`
		RestartPolicy            string      `json:"restartPolicy"`
		OSType                   string      `json:"osType"`
		Priority                 string      `json:"priority"`
		SKU                      string      `json:"sku"`
		SubnetIDs                []struct {
			ID string `json:"id"`
		} `json:"subnetIds"`
		IPAddress *struct {
			Type         string `json:"type"`
			Ports        []port `json:"ports"`
			DNSNameLabel string `json:"dnsNameLabel"`
		} `json:"ipAddress"`
		DNSConfig  map[string]any `json:"dnsConfig"`
		Extensions []struct {
			Name       string `json:"name"`
			Properties *struct {
				ExtensionType string `json:"extensionType"`
				Version       string `json:"version"`
			} `json:"properties"`
		} `json:"extensions"`
	} `json:"properties"`
}

type volume struct {
	Name      string            `json:"name"`
	Secret    map[string][]byte `json:"secret"`
	AzureFile map[string]any    `json:"azureFile"`
}

type login struct {
	Server   string `json:"server"`
	Username string `json:"username"`
	Identity string `json:"identity"`
}

type port struct {
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
}

type amounts struct {
	CPU        float64 `json:"cpu"`
	MemoryInGB float64 `json:"memoryInGB"`
}

type container struct {
	Name       string `json:"name"`
	Properties struct {
		Image                string   `json:"image"`
		Command              []string `json:"command"`
		EnvironmentVariables []struct {
			Name        string  `json:"name"`
			Value       *string `json:"value"`
			SecureValue *string `json:"secureValue"`
		} `json:"environmentVariables"`
		VolumeMounts []struct {
			Name      string `json:"name"`
			MountPath string `json:"mountPath"`
			ReadOnly  bool   `json:"readOnly"`
		} `json:"volumeMounts"`
		Ports     []port `json:"ports"`
		Resources *struct {
			Requests amounts  `json:"requests"`
			Limits   *amounts `json:"limits"`
		} `json:"resources"`
		LivenessProbe  *probe `json:"livenessProbe"`
		ReadinessProbe *probe `json:"readinessProbe"`
	} `json:"properties"`
}

type probe struct {
	Exec *struct {
		Command []string `json:"command"`
	} `json:"exec"`
	HTTPGet             map[string]any `json:"httpGet"`
	InitialDelaySeconds int32          `json:"initialDelaySeconds"`
	PeriodSeconds       int32          `json:"periodSeconds"`
	FailureThreshold    int32          `json:"failureThreshold"`
	SuccessThreshold    int32          `json:"successThreshold"`
	TimeoutSeconds      int32          `json:"timeoutSeconds"`
}

var (
	groupName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	containerName = groupName
)

// findProblems returns the problems of a request that the description of fields cannot express.
func (p *Request) findProblems(name string) (out []string) {
	if !groupName.MatchString(name) {
		out = append(out, "InvalidContainerGroupName: "+name)
	}
	g := &p.Properties
	if len(g.Containers) == 0 {
		out = append(out, "properties.containers: want one or more")
	}
	volumes := map[string]bool{}
	for _, v := range g.Volumes {
		volumes[v.Name] = true
	}
	for i, c := range append(slices.Clone(g.InitContainers), g.Containers...) {
		if !containerName.MatchString(c.Name) {
			out = append(out, "InvalidContainerName: "+c.Name)
		}
		if isInit := i < len(g.InitContainers); isInit == (c.Properties.Resources != nil) {
			out = append(out, c.Name+": resources are of containers, and of no init containers")
		}
		for _, m := range c.Properties.VolumeMounts {
			if !volumes[m.Name] {
				out = append(out, "VolumeNotFound: "+m.Name)
			}
		}
	}
	if g.DNSConfig != nil && len(g.SubnetIDs) == 0 {
		out = append(out, "properties.dnsConfig: only with a subnet")
	}
	if g.OSType != "Linux" {
		out = append(out, "properties.osType: the fleet runs Linux")
	}
	return out
}

func (s *Server) start(w http.ResponseWriter, r *http.Request, name string, data []byte, asked Request) {
	var shows map[string]any
	_ = json.Unmarshal(data, &shows) // the data were decoded before
	hideSecrets(shows)
	s.mu.Lock()
	if old := s.groups[name]; old != nil {
		ending := old.ending
		s.mu.Unlock()
		switch {
		case ending:
			refuseRequest(w, http.StatusConflict, codeTransitioning, "The container group '"+name+"' is still transitioning, please retry later.")
		case !old.asked.isUpdatedBy(&asked):
			refuseRequest(w, http.StatusBadRequest, codeUpdate, "The updates on container group '"+name+"' are invalid: restart policy, network, CPU and memory do not change.")
		default:
			s.get(w, r, name) // an identical request changes nothing
		}
		return
	}
	if s.Quota != 0 && len(s.groups) >= s.Quota {
		s.mu.Unlock()
		refuseRequest(w, http.StatusConflict, "ContainerGroupQuotaReached", fmt.Sprintf("Resource type 'Microsoft.ContainerInstance/containerGroups' container group quota '%d' exceeded.", s.Quota))
		return
	}
	s.started++
	g := &group{name: name, id: fmt.Sprintf("%s-%d", name, s.started), asked: asked, shows: shows, created: time.Now(), events: map[string]event{}}
	s.groups[name] = g
	s.mu.Unlock()
	if err := s.fleet.Start(context.WithoutCancel(r.Context()), asked.run(s.idOf(g))); err != nil {
		s.mu.Lock()
		g.failed = err.Error()
		s.mu.Unlock()
	}
	w.Header().Set("Azure-AsyncOperation", "https://"+r.Host+"/subscriptions/"+s.place.Subscription+"/providers/Microsoft.ContainerInstance/locations/"+s.place.Region+"/operations/"+s.idOf(g))
	body := s.groupBody(g)
	body["properties"].(map[string]any)["provisioningState"] = "Pending"
	answerJSON(w, http.StatusCreated, body)
}

// sumRequests returns the requests of all containers of a group together.
func (p *Request) sumRequests() (cpu, memory float64) {
	for i := range p.Properties.Containers {
		if r := p.Properties.Containers[i].Properties.Resources; r != nil {
			cpu, memory = cpu+r.Requests.CPU, memory+r.Requests.MemoryInGB
		}
	}
	return cpu, memory
}

// isUpdatedBy reports whether a create may change a group into another: MicrosoftDocs/azure-docs#38067,
// 2019-08-30.
func (p *Request) isUpdatedBy(to *Request) bool {
	of := func(g *Request) string {
		cpu, memory := g.sumRequests()
		return fmt.Sprint(g.Properties.OSType, g.Properties.RestartPolicy, g.Properties.SubnetIDs, math.Round(cpu*100), math.Round(memory*10))
	}
	return of(p) == of(to)
}

// hideSecrets removes values that the service never shows again.
func hideSecrets(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"secureValue", "password", "workspaceKey", "storageAccountKey", "protectedSettings"} {
			delete(v, name)
		}
		if secret, ok := v["secret"].(map[string]any); ok {
			for name := range secret {
				secret[name] = nil
			}
		}
		for inner := range maps.Values(v) {
			hideSecrets(inner)
		}
	case []any:
		for _, inner := range v {
			hideSecrets(inner)
		}
	}
}

// run returns the group for the fleet.
func (p *Request) run(id string) emulator.Group {
	g := &p.Properties
	out := emulator.Group{ID: id, Files: map[string]map[string][]byte{}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicy(g.RestartPolicy)}}
	for _, v := range g.Volumes {
		source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		if len(v.Secret) > 0 {
			name := id + "." + v.Name // a runner may identify secrets only by name
			source = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o644))}}
			out.Files[name] = v.Secret
		}
		out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: source})
	}
	for i := range g.InitContainers {
		out.Spec.InitContainers = append(out.Spec.InitContainers, g.InitContainers[i].run())
	}
	for i := range g.Containers {
		out.Spec.Containers = append(out.Spec.Containers, g.Containers[i].run())
	}
	return out
}

func (c *container) run() corev1.Container {
	p := &c.Properties
	out := corev1.Container{Name: c.Name, Image: p.Image, LivenessProbe: p.LivenessProbe.run(), ReadinessProbe: p.ReadinessProbe.run()}
	if len(p.Command) > 0 {
		out.Command, out.Args = p.Command[:1], p.Command[1:]
	}
	for _, e := range p.EnvironmentVariables {
		v := corev1.EnvVar{Name: e.Name}
		if e.Value != nil {
			v.Value = *e.Value
		} else if e.SecureValue != nil {
			v.Value = *e.SecureValue
		}
		out.Env = append(out.Env, v)
	}
	for _, m := range p.VolumeMounts {
		out.VolumeMounts = append(out.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly})
	}
	return out
}

func (p *probe) run() *corev1.Probe {
	if p == nil || p.Exec == nil {
		return nil
	}
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: p.Exec.Command}},
		InitialDelaySeconds: p.InitialDelaySeconds, PeriodSeconds: max(p.PeriodSeconds, 1), FailureThreshold: max(p.FailureThreshold, 1),
		SuccessThreshold: max(p.SuccessThreshold, 1), TimeoutSeconds: max(p.TimeoutSeconds, 1),
	}
}

func (s *Server) findGroup(name string) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[name]
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name string) {
	g := s.findGroup(name)
	if g != nil {
		body, err := s.groupView(r.Context(), g)
		if err == nil {
			answerJSON(w, http.StatusOK, body)
			return
		}
		if !errdefs.IsNotFound(err) {
			refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
			return
		}
	}
	refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.ContainerInstance/containerGroups/"+name+"' was not found.")
}

func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request, name string) {
	g := s.findGroup(name)
	if g == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := s.fleet.Stop(context.WithoutCancel(r.Context()), s.idOf(g), s.Grace); errdefs.IsNotFound(err) {
		s.dropGroup(g)
		if _, stopped := s.pendingChange(g); stopped {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	} else if err != nil {
		refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	s.mu.Lock()
	g.ending = true
	s.mu.Unlock()
	w.Header().Set("Azure-AsyncOperation", "https://"+r.Host+"/operations/"+s.idOf(g))
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) dropGroup(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[g.name] == g {
		delete(s.groups, g.name)
	}
}

// groupBody returns a group without the states of its containers.
func (s *Server) groupBody(g *group) map[string]any {
	data, _ := json.Marshal(g.shows) // shows came from JSON
	var out map[string]any
	_ = json.Unmarshal(data, &out)
	out["name"], out["type"] = g.name, "Microsoft.ContainerInstance/containerGroups"
	out["id"] = "/subscriptions/" + s.place.Subscription + "/resourceGroups/" + s.place.ResourceGroup + "/providers/Microsoft.ContainerInstance/containerGroups/" + g.name
	return out
}

// listedGroups returns the content of a list: groups as the fleet lists them, perhaps late, without the states of their
// containers.
func (s *Server) listedGroups(ctx context.Context) ([]map[string]any, error) {
	s.mu.Lock()
	stale := s.stale
	s.mu.Unlock()
	if stale != nil {
		return stale, nil
	}
	seen, err := s.fleet.List(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	byID := map[string]*group{}
	for _, g := range s.groups {
		byID[g.id] = g
	}
	s.mu.Unlock()
	out := []map[string]any{}
	for _, one := range seen {
		if g := byID[one.ID]; g != nil && !one.Gone {
			body := s.groupBody(g)
			body["properties"].(map[string]any)["provisioningState"] = provisioningState(g, one)
			out = append(out, body)
		}
	}
	there := map[string]bool{}
	for _, one := range seen {
		there[one.ID] = !one.Gone
	}
	for id, g := range byID { // the fleet has no groups that failed to start or were stopped
		state := "Failed"
		if g.failed == "" {
			state = "Succeeded"
		}
		if again, stopped := s.pendingChange(g); g.failed != "" || (stopped || again) && !there[id] {
			body := s.groupBody(g)
			body["properties"].(map[string]any)["provisioningState"] = state
			out = append(out, body)
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	return out, nil
}

// Stale freezes lists in their present state, until it is called with false.
func (s *Server) Stale(ctx context.Context, on bool) error {
	var now []map[string]any
	if on {
		var err error
		if now, err = s.listedGroups(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = now
	return nil
}

// Lose makes a group vanish. It returns the ID of the group in the fleet, because its containers still run there.
func (s *Server) Lose(name string) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[name]; g != nil {
		id = g.id
		delete(s.groups, name)
	}
	return id
}

// Left returns the leftovers, by kind, for tests: the groups of a list, and unopened sessions of exec.
func (s *Server) Left() map[string][]string {
	shown, err := s.listedGroups(context.Background())
	left := map[string][]string{"groups": {}}
	for _, g := range shown {
		left["groups"] = append(left["groups"], g["name"].(string))
	}
	if err != nil {
		left["groups"] = []string{"unknown: " + err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left["sessions"] = slices.Collect(maps.Keys(s.sessions))
	return left
}

// ID returns the ID of a group in the fleet, or "".
func (s *Server) ID(name string) string {
	if g := s.findGroup(name); g != nil {
		return s.idOf(g)
	}
	return ""
}

func formatTime(t metav1.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// The effects and codes of stop and restart are from Azure/azure-sdk-for-go: armcontainerinstance/v2 v2.4.0, of
// the API 2023-05-01, and MicrosoftDocs/azure-docs: container-instances-stop-start.md, as read on 2026-11-28. A
// stop has no effect on a group that has ended. A stopped group keeps no containers and costs nothing. No
// container is started alone. A stopped group is not restarted: this is from Azure/azure-cli#8136, 2018-12-31,
// which does not quote the code.

// stop stops the containers of a group.
func (s *Server) stop(w http.ResponseWriter, r *http.Request, name string) {
	g := s.findGroup(name)
	if !s.mayChange(w, g, name) {
		return
	}
	seen, err := s.fleet.Get(r.Context(), s.idOf(g))
	if ended := err == nil && (seen.Status.Phase == "Succeeded" || seen.Status.Phase == "Failed"); !ended {
		s.mu.Lock()
		g.stopped, g.again = true, false
		s.mu.Unlock()
		err = s.fleet.Stop(context.WithoutCancel(r.Context()), s.idOf(g), s.Grace)
	}
	s.answerChange(w, err)
}

// restartGroup stops the containers of a group, and starts them again.
func (s *Server) restartGroup(w http.ResponseWriter, r *http.Request, name string) {
	g := s.findGroup(name)
	if !s.mayChange(w, g, name) {
		return
	}
	if _, stopped := s.pendingChange(g); stopped {
		refuseRequest(w, http.StatusBadRequest, unquoted, "Container Group '"+name+"' in resource group '"+s.place.ResourceGroup+"' is stopped.")
		return
	}
	s.mu.Lock()
	g.again = true
	s.mu.Unlock()
	s.answerChange(w, s.fleet.Stop(context.WithoutCancel(r.Context()), s.idOf(g), s.Grace))
}

// mayChange answers with an error and returns false if the group does not exist or is being deleted.
func (s *Server) mayChange(w http.ResponseWriter, g *group, name string) bool {
	if g == nil {
		refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.ContainerInstance/containerGroups/"+name+"' was not found.")
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.ending {
		refuseRequest(w, http.StatusConflict, codeTransitioning, "The container group '"+name+"' is still transitioning, please retry later.")
	}
	return !g.ending
}

// answerChange answers a request to change a group.
func (*Server) answerChange(w http.ResponseWriter, err error) {
	if err != nil && !errdefs.IsNotFound(err) {
		refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// idOf returns the ID of a group in the fleet. The ID changes when the group starts again.
func (s *Server) idOf(g *group) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.id
}

// pendingChange reports whether a group will be started again, and whether it will stop.
func (s *Server) pendingChange(g *group) (again, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.again && !g.ending, g.stopped && !g.ending
}

// runAgain starts a group whose containers have ended.
func (s *Server) runAgain(ctx context.Context, g *group) {
	s.mu.Lock()
	if !g.again {
		s.mu.Unlock()
		return
	}
	s.started++
	g.again, g.id = false, fmt.Sprintf("%s-%d", g.name, s.started)
	run := g.asked.run(g.id)
	s.mu.Unlock()
	if err := s.fleet.Start(context.WithoutCancel(ctx), run); err != nil {
		s.mu.Lock()
		g.failed = err.Error()
		s.mu.Unlock()
	}
}
