// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// record is a container or a capsule in the database of Zun.
type record struct {
	uuid, name string
	capsule    bool
	body       object
	labels     map[string]string
	registry   string
	created    time.Time
	host       bool // the container has been scheduled

	status, reason, detail, task string
	fixed                        bool // a test has set the state
	runs                         []*run
	actions                      []*action // the newest first
	after                        func()    // continues the current action at the end of the last run
	begun                        func()    // continues the current action at the begin of the last run
}

// run is one run of a container: a group of the fleet.
type run struct {
	id                string
	status            corev1.PodStatus
	logged            string // the log of a stopped run
	stopped           bool
	started, finished time.Time
}

// action is a requested action on a container.
type action struct {
	name, request, message string
	start, finish          time.Time
}

// stateOf returns the state of the container of a run. The container waits until there is a report.
func (r *run) stateOf() corev1.ContainerState {
	if len(r.status.ContainerStatuses) == 0 {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	}
	return r.status.ContainerStatuses[0].State
}

// last returns the current or last run, or nil if there was none.
func (rec *record) last() *run {
	if len(rec.runs) == 0 {
		return nil
	}
	return rec.runs[len(rec.runs)-1]
}

// reported records a report of the runner about a run. s.mu is held.
func (rec *record) reported(id string, status *corev1.PodStatus) {
	i := slices.IndexFunc(rec.runs, func(r *run) bool { return r.id == id })
	if i < 0 {
		return
	}
	r := rec.runs[i]
	if r.stateOf().Terminated != nil && !rec.capsule { // a run ends once
		return
	}
	r.status = *status
	state := r.stateOf()
	if r.started.IsZero() && (state.Running != nil || state.Terminated != nil) {
		r.started = time.Now()
		if rec.begun != nil {
			rec.begun()
			rec.begun = nil
		}
	}
	if state.Terminated != nil {
		r.finished = time.Now()
		if rec.after != nil && r.stopped {
			rec.after()
			rec.after = nil
		}
	}
}

const stampForm = "2006-01-02 15:04:05"

// show is how Zun shows it. s.mu is held.
func (rec *record) show() object {
	out := object{
		"uuid": rec.uuid, "name": rec.name, "status": rec.status, "status_reason": orNil(rec.reason), "labels": rec.labels,
		"created_at": rec.created.UTC().Format(stampForm), "updated_at": rec.created.UTC().Format(stampForm), "addresses": object{}, "user_id": "user-1", "project_id": "project-1",
	}
	if r := rec.last(); r != nil && r.status.PodIP != "" {
		out["addresses"] = object{"network-1": []object{{"addr": r.status.PodIP, "version": 4, "port": "port-1", "subnet_id": "subnet-1", "preserve_on_delete": false}}}
	}
	if rec.capsule {
		var members []object
		template, _ := rec.body["template"].(object)
		spec, _ := template["spec"].(object)
		list, _ := spec["containers"].([]any)
		for i, c := range list {
			in, _ := c.(object)
			members = append(members, object{"uuid": fmt.Sprint(rec.uuid, "-", i), "name": "capsule-" + rec.name + "-omega-" + strconv.Itoa(i), "image": in["image"], "status": rec.status, "status_detail": nil, "task_state": nil})
		}
		out["containers"], out["init_containers"], out["restart_policy"] = members, []object{}, object{"Name": "always", "MaximumRetryCount": "0"}
		return out
	}
	for _, name := range []string{"image", "command", "entrypoint", "environment", "workdir", "hostname", "cpu", "memory", "restart_policy", "tty", "interactive", "security_groups"} {
		out[name] = rec.body[name]
	}
	out["status_detail"], out["task_state"], out["registry_id"] = orNil(rec.detail), orNil(rec.task), orNil(rec.registry)
	return out
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// age returns a time in the form of Zun: less than a second is None.
func age(t time.Time) string {
	switch d := time.Since(t); {
	case d < time.Second:
		return "None"
	case d < time.Minute:
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d mins", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// refresh updates the state from Docker, unless an action is running. It does not refresh a capsule.
func (s *Server) refresh(_ context.Context, rec *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := rec.last()
	if rec.capsule || rec.task != "" || r == nil || rec.fixed {
		return
	}
	switch state := r.stateOf(); {
	case state.Running != nil && rec.status != "Paused":
		rec.status, rec.detail = "Running", "Up "+age(r.started)
	case state.Terminated != nil:
		rec.status, rec.detail = "Stopped", fmt.Sprintf("Exited(%d) %s ago ", state.Terminated.ExitCode, age(r.finished))
	}
	if strings.Contains(rec.detail, " None") { // Zun has no detail then
		if rec.status == "Running" {
			rec.detail = ""
		}
	}
}

// later calls f after the response.
func (s *Server) later(f func()) { time.AfterFunc(s.Slow, f) }

// forbidden are the fields that the policy of Zun reserves for administrators.
var forbidden = []string{"image_pull_policy", "runtime", "host", "privileged"}

// create makes a container.
func (s *Server) create(query url.Values, body object) (object, error) {
	if err := checkQuery("containers.post", query); err != nil {
		return nil, fail(http.StatusBadRequest, "schema-validation-error", "%v", err)
	}
	if err := CheckBody("containers.post", body); err != nil {
		return nil, fail(http.StatusBadRequest, "schema-validation-error", "%v", err)
	}
	for _, name := range forbidden {
		if body[name] != nil {
			return nil, fail(http.StatusForbidden, "policy-not-authorized", "Policy doesn't allow container:create:%s to be performed.", name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Quota > 0 && len(s.records) >= s.Quota {
		return nil, fail(http.StatusForbidden, "over-quota", "Quota exceeded for resources: ['containers']")
	}
	for _, of := range []struct {
		field, inside string
		known         []string
	}{{"nets", "network", s.Networks}, {"security_groups", "", s.SecurityGroups}} {
		list, _ := body[of.field].([]any)
		for _, one := range list {
			name, _ := one.(string)
			if o, ok := one.(object); ok {
				name = text(o, of.inside)
			}
			if of.known != nil && !slices.Contains(of.known, name) {
				return nil, fail(http.StatusBadRequest, "invalid-value", "%s %s not found.", of.field, name)
			}
		}
	}
	rec := &record{uuid: newUUID(), name: text(body, "name"), body: body, labels: map[string]string{}, created: time.Now(), status: "Creating"}
	labels, _ := body["labels"].(object)
	for key, value := range labels {
		rec.labels[key] = fmt.Sprint(value)
	}
	if name := text(body, "registry"); name != "" {
		r := s.registry(name)
		if r == nil {
			return nil, fail(http.StatusNotFound, "registry-not-found", "Registry %s could not be found.", name)
		}
		rec.registry = r.uuid
	}
	s.records = append(s.records, rec)
	image, known := s.Images[text(body, "image")]
	if s.Images != nil && !known { // the container stays, but no action continues
		return nil, fail(http.StatusBadRequest, "image-not-found", "Image %s could not be found.", text(body, "image"))
	}
	rec.host = true
	rec.fill(image)
	a := s.note(rec, "create", "req-"+newUUID())
	if query.Get("run") == "true" {
		s.later(func() { s.begin(rec, "container_creating", a) })
	} else {
		s.later(func() { s.change(rec, func() { rec.status, rec.detail = "Created", "Created" }) })
	}
	return rec.show(), nil
}

// fill takes missing values from the image, each independently.
func (rec *record) fill(image Image) {
	for name, from := range map[string][]string{"entrypoint": image.Entrypoint, "command": image.Command} {
		if list, _ := rec.body[name].([]any); len(list) == 0 {
			list = []any{}
			for _, word := range from {
				list = append(list, word)
			}
			rec.body[name] = list
		}
	}
	if rec.body["cpu"] == nil {
		rec.body["cpu"] = 1.0
	}
	if rec.body["memory"] == nil {
		rec.body["memory"] = "512"
	}
}

// note records an action. s.mu is held.
func (s *Server) note(rec *record, name, request string) *action {
	a := &action{name: name, request: request, start: time.Now()}
	rec.actions = append([]*action{a}, rec.actions...)
	return a
}

func (s *Server) change(rec *record, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// begin starts a run of a container.
func (s *Server) begin(rec *record, task string, a *action) {
	s.mu.Lock()
	rec.task, rec.fixed = task, false
	r := &run{id: fmt.Sprintf("%s-%d", rec.uuid, len(rec.runs))}
	rec.runs = append(rec.runs, r)
	if s.byRun == nil {
		s.byRun = map[string]*record{}
	}
	s.byRun[r.id] = rec
	rec.begun = func() { rec.task, rec.status, rec.reason, a.finish = "", "Running", "", time.Now() }
	group := rec.group(r.id)
	s.mu.Unlock()
	if err := s.Fleet.Start(s.Context, group); err != nil {
		s.change(rec, func() {
			rec.begun = nil
			rec.task, rec.status, rec.reason, a.message, a.finish = "", "Error", err.Error(), "Error", time.Now()
		})
		return
	}
	if seen, err := s.Fleet.Get(s.Context, r.id); err == nil {
		s.change(rec, func() { rec.reported(r.id, &seen.Status) })
	}
}

func words(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		out = append(out, fmt.Sprint(one))
	}
	return out
}

// group returns the group of the fleet for a container.
func (rec *record) group(id string) emulator.Group {
	b := rec.body
	c := corev1.Container{
		Name: "main", Image: text(b, "image"), Command: words(b["entrypoint"]), Args: words(b["command"]), WorkingDir: text(b, "workdir"),
		Stdin: b["interactive"] == true, TTY: b["tty"] == true,
	}
	env, _ := b["environment"].(object)
	for name, value := range env {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: fmt.Sprint(value)})
	}
	if mib, err := strconv.ParseInt(fmt.Sprint(b["memory"]), 10, 64); err == nil {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(mib<<20, resource.BinarySI)}
	}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Hostname: strings.ReplaceAll(text(b, "hostname"), ".", "-"), EnableServiceLinks: new(false)}
	out := emulator.Group{ID: id, Files: map[string]map[string][]byte{}}
	files := map[string][]byte{}
	mounts, _ := b["mounts"].([]any)
	for i, one := range mounts {
		m, _ := one.(object)
		name := "m" + strconv.Itoa(i)
		if text(m, "type") == "bind" {
			files[name], _ = base64.StdEncoding.DecodeString(text(m, "source"))
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "files", MountPath: text(m, "destination"), SubPath: name})
			continue
		}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: text(m, "destination")})
	}
	if len(files) > 0 {
		secret := id + ".files"
		out.Files[secret] = files
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
	}
	spec.Containers = []corev1.Container{c}
	out.Spec = spec
	return out
}

// remove removes a container with all its runs.
func (s *Server) remove(rec *record) {
	s.mu.Lock()
	runs := slices.Clone(rec.runs)
	s.mu.Unlock()
	for _, r := range runs {
		if err := s.Fleet.Stop(s.Context, r.id, 0); err != nil && !errdefs.IsNotFound(err) {
			s.change(rec, func() { rec.status, rec.reason, rec.task = "Error", err.Error(), "" })
			return
		}
	}
	s.Lose(rec.uuid)
}
