// SPDX-License-Identifier: Apache-2.0

package podenv

import corev1 "k8s.io/api/core/v1"

// environment collects the variables of one container. If a name is set again, the last setting determines its position and value.
type environment struct {
	vars     []corev1.EnvVar
	last     map[string]int // index in vars of the effective setting
	services serviceVariables
}

func newEnvironment(services serviceVariables, declared int) *environment {
	return &environment{
		vars:     make([]corev1.EnvVar, 0, declared+len(services.names)),
		last:     make(map[string]int, declared),
		services: services,
	}
}

func (e *environment) set(v corev1.EnvVar) {
	e.last[v.Name] = len(e.vars)
	e.vars = append(e.vars, v)
}

// lookUpValue returns the value of $(name) at this point. A variable that the provider fills has no value, and hides a service variable of the same
// name.
func (e *environment) lookUpValue(name string) (string, bool) {
	if i, ok := e.last[name]; ok {
		return e.vars[i].Value, e.vars[i].ValueFrom == nil
	}
	value, ok := e.services.values[name]
	return value, ok
}

// list returns the effective variables in the order of their definition, then the visible service variables. e must not be used afterwards.
func (e *environment) list() []corev1.EnvVar {
	all := e.vars[:0]
	for i, v := range e.vars {
		if e.last[v.Name] == i {
			all = append(all, v)
		}
	}
	for _, name := range e.services.names {
		if _, hidden := e.last[name]; !hidden {
			all = append(all, corev1.EnvVar{Name: name, Value: e.services.values[name]})
		}
	}
	return all
}
