// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// slugRule matches a slug. The old provider allowed at most 63 characters.
var slugRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// sizes are the CPUs and memory of SP-1 to SP-8, by the README of virtual-kubelet-stackpath at 0dfe8f5 of 2023-11-18.
var sizes = []string{"1 2Gi", "2 4Gi", "2 8Gi", "4 16Gi", "8 32Gi", "16 64Gi", "32 128Gi", "48 256Gi"}

// brokenRule returns the error of a workload that contradicts a sentence of the description, or nil.
func (s *Server) brokenRule(w *spec) error {
	if !slugRule.MatchString(w.Slug) || w.Name == "" {
		return invalid("workload.slug", "%q: want up to 63 small letters, digits and dashes, and a name", w.Slug)
	}
	if text := w.Spec.Runtime.Containers.TerminationGracePeriodSeconds; text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 0 || n > 300 {
			return invalid("workload.spec.runtime.containers.terminationGracePeriodSeconds", "%s: want 0 to 300", text)
		}
	}
	for _, sysctl := range w.Spec.Runtime.Containers.SecurityContext.Sysctls {
		if !slices.Contains(described().Sysctls, sysctl.Name) {
			return invalid("workload.spec.runtime.containers.securityContext.sysctls", "%s is not supported", sysctl.Name)
		}
	}
	if len(w.Spec.Containers) == 0 {
		return invalid("workload.spec.containers", "is empty")
	}
	if err := s.brokenTarget(w); err != nil {
		return err
	}
	for part, all := range map[string]map[string]container{"initContainers": w.Spec.InitContainers, "containers": w.Spec.Containers} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := all[name].brokenRule("workload.spec." + part + "." + name); err != nil {
				return err
			}
		}
	}
	return nil
}

// brokenTarget checks the target of the workload: one instance in one city.
func (s *Server) brokenTarget(w *spec) error {
	for name, t := range w.Targets {
		at := "workload.targets." + name + ".spec"
		d := t.Spec.Deployments
		if t.Spec.DeploymentScope != "cityCode" || d.MinReplicas != 1 || d.MaxReplicas != 1 || len(d.Selectors) != 1 {
			return invalid(at, "this server has one instance in one city: want the scope cityCode, 1 replica and 1 selector")
		}
		is := d.Selectors[0]
		if !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, is.Operator) {
			return invalid(at+".deployments.selectors[0].operator", "%q: want In, NotIn, Exists or DoesNotExist", is.Operator)
		}
		if is.Key != "cityCode" || is.Operator != "In" || len(is.Values) != 1 || !slices.Contains(s.Cities, is.Values[0]) {
			return invalid(at+".deployments.selectors[0]", "%v: want a city of %v", is.Values, s.Cities)
		}
	}
	if len(w.Targets) != 1 {
		return invalid("workload.targets", "want one")
	}
	return nil
}

func (c container) brokenRule(at string) error {
	if c.Image == "" {
		return invalid(at+".image", "is missing")
	}
	for _, list := range []map[string]string{c.Resources.Requests, c.Resources.Limits} {
		for name := range list {
			if !slices.Contains([]string{"cpu", "memory", "nvidia-a16", "ephemeral-storage"}, name) {
				return invalid(at+".resources", "%s is not supported", name)
			}
		}
		if size := list["cpu"] + " " + list["memory"]; !slices.Contains(sizes, size) {
			return invalid(at+".resources", "%s: want one of the sizes %v", size, sizes)
		}
	}
	for name, p := range c.Ports {
		if p.Port < 1 || p.Port > 65535 || !slices.Contains([]string{"", "TCP", "UDP"}, p.Protocol) {
			return invalid(at+".ports."+name, "want a port of TCP or UDP")
		}
	}
	for name, v := range c.Env {
		if v.SecretValue != "" && (v.Value != "" || v.ValueFrom != nil) || v.ValueFrom != nil && (v.Value != "" || v.ValueFrom.InstanceFieldRef.FieldPath != ".ipAddress") {
			return invalid(at+".env."+name, "want one value, or the field .ipAddress")
		}
	}
	if s := c.SecurityContext; s != nil {
		for _, name := range slices.Concat(s.Capabilities.Add, s.Capabilities.Drop) {
			if !slices.Contains(described().Capabilities, "cap_"+strings.ToLower(name)) {
				return invalid(at+".securityContext.capabilities", "%s is not supported", name)
			}
		}
	}
	if l := c.Lifecycle; l != nil {
		for name, h := range map[string]*handler{"postStart": l.PostStart, "preStop": l.PreStop} {
			if h != nil && h.broken() {
				return invalid(at+".lifecycle."+name, "want one action")
			}
		}
	}
	return c.brokenProbe(at)
}

func (c container) brokenProbe(at string) error {
	for name, p := range map[string]*probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		switch {
		case p == nil:
		case p.broken():
			return invalid(at+"."+name, "want one action")
		case name == "livenessProbe" && p.SuccessThreshold > 1:
			return invalid(at+"."+name+".successThreshold", "must be 1 for liveness")
		case min(p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold) < 0:
			return invalid(at+"."+name, "a number is below its minimum")
		}
	}
	return nil
}

// broken reports whether the handler does not have exactly one action.
func (h *handler) broken() bool {
	n := 0
	for _, is := range []bool{h.Exec != nil, h.HTTPGet != nil, h.TCPSocket != nil} {
		if is {
			n++
		}
	}
	return n != 1 || h.HTTPGet != nil && h.HTTPGet.Port == 0 || h.TCPSocket != nil && h.TCPSocket.Port == 0 || h.Exec != nil && len(h.Exec.Command) == 0
}
