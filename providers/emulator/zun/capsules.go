// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// serveCapsules answers requests about capsules.
func (s *Server) serveCapsules(r *http.Request, path []string, body object) (answer any, status int, err error) {
	switch {
	case len(path) == 0 && r.Method == http.MethodPost:
		answer, err = s.createCapsule(body)
		return answer, http.StatusAccepted, err
	case len(path) == 0:
		answer, err = s.list(r, true)
		return answer, http.StatusOK, err
	}
	rec, err := s.find(path[0], true)
	if err != nil {
		return nil, 0, err
	}
	if r.Method == http.MethodDelete { // in any state
		s.later(func() { s.remove(rec) })
		return nil, http.StatusNoContent, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return rec.show(), http.StatusOK, nil
}

// createCapsule makes a capsule.
func (s *Server) createCapsule(body object) (object, error) {
	if text, is := body["template"].(string); is { // some clients send the template as text
		var o object
		if json.Unmarshal([]byte(text), &o) != nil {
			return nil, fail(http.StatusBadRequest, "failed-parse-string-to-json", "the template is no JSON")
		}
		body["template"] = o
	}
	if err := CheckBody("capsules.post", body); err != nil {
		return nil, fail(http.StatusBadRequest, "schema-validation-error", "%v", err)
	}
	template, _ := body["template"].(object)
	spec, _ := template["spec"].(object)
	meta, _ := template["metadata"].(object)
	list, _ := spec["containers"].([]any)
	for _, one := range list {
		c, _ := one.(object)
		resources, _ := c["resources"].(object)
		requests, _ := resources["requests"].(object)
		for name, v := range requests {
			if _, number := v.(float64); !number {
				return nil, fmt.Errorf("TypeError: unsupported operand of %s", name) // Zun sums them up
			}
		}
	}
	rec := &record{uuid: newUUID(), name: text(meta, "name"), capsule: true, body: body, labels: map[string]string{}, created: time.Now(), status: "Creating", host: true}
	labels, _ := meta["labels"].(object)
	for key, value := range labels {
		rec.labels[key] = fmt.Sprint(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, rec)
	s.later(func() {
		switch {
		case !s.Capsules:
			s.change(rec, func() { rec.status, rec.reason = "Error", "unknown service runtime.v1alpha2.RuntimeService" })
		case spec["initContainers"] != nil:
			s.change(rec, func() { rec.status, rec.reason = "Error", "'Retrying' object has no attribute 'call'" })
		default:
			s.beginCapsule(rec, list)
		}
	})
	return rec.show(), nil
}

// beginCapsule runs a capsule. Docker starts its containers again, without a report.
func (s *Server) beginCapsule(rec *record, list []any) {
	g := emulator.Group{ID: rec.uuid + "-0", Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, EnableServiceLinks: new(false)}}
	for i, one := range list {
		in, _ := one.(object)
		c := corev1.Container{Name: "c" + strconv.Itoa(i), Image: text(in, "image"), Args: append(words(in["command"]), words(in["args"])...), WorkingDir: text(in, "workDir")}
		env, _ := in["env"].(object)
		for name, value := range env {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: fmt.Sprint(value)})
		}
		g.Spec.Containers = append(g.Spec.Containers, c)
	}
	s.change(rec, func() { rec.runs = append(rec.runs, &run{id: g.ID}) })
	err := s.Fleet.Start(s.Context, g)
	s.change(rec, func() {
		rec.status = "Running"
		if err != nil {
			rec.status, rec.reason = "Error", err.Error()
		}
	})
}
