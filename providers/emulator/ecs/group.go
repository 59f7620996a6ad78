// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// start runs the containers of a task. The caller holds s.mu. The runner must not report before s.mu is released.
func (s *Server) start(t *task) error {
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}
	for _, v := range t.definition.Volumes { // a file system of EFS is an empty directory here
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for _, c := range t.definition.ContainerDefinitions {
		k, err := s.run(c)
		if err != nil {
			s.haltTask(t, "TaskFailedToStart", "ResourceInitializationError: "+err.Error())
			return nil //nolint:nilerr // halt reports the error in the task
		}
		var after []string
		for _, dep := range c.DependsOn {
			if dep.Condition == "COMPLETE" {
				after = append(after, dep.ContainerName)
			}
		}
		if len(after) > 0 {
			if t.late == nil {
				t.late = &late{spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Volumes: spec.Volumes}}
			}
			t.late.spec.Containers, t.late.after = append(t.late.spec.Containers, k), append(t.late.after, after...)
			continue
		}
		restarts := s.config.Quick && c.RestartPolicy != nil && c.RestartPolicy.Enabled
		switch {
		case c.isEssential(), t.definition.waitsForEnd(c.Name):
			spec.Containers = append(spec.Containers, k)
			if restarts {
				spec.RestartPolicy = corev1.RestartPolicyAlways
				if len(c.RestartPolicy.IgnoredExitCodes) > 0 {
					spec.RestartPolicy = corev1.RestartPolicyOnFailure
				}
			}
		case restarts:
			always := corev1.ContainerRestartPolicyAlways
			k.RestartPolicy = &always
			spec.InitContainers = append(spec.InitContainers, k)
		default:
			spec.InitContainers = append(spec.InitContainers, k)
		}
	}
	if err := s.fleet.Start(s.ctx, emulator.Group{ID: t.id, Spec: spec}); err != nil {
		return fmt.Errorf("the runner refused the task: %w", err)
	}
	return nil
}

// run returns the container to run for a container of a definition.
func (s *Server) run(c containerDefinition) (corev1.Container, error) {
	k := corev1.Container{Name: c.Name, Image: c.Image, Command: c.EntryPoint, Args: c.Command}
	if c.WorkingDirectory != nil {
		k.WorkingDir = *c.WorkingDirectory
	}
	for _, e := range c.Environment {
		k.Env = append(k.Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
	}
	for _, e := range c.Secrets {
		value, err := s.secretValue(e.ValueFrom)
		if err != nil {
			return k, err
		}
		k.Env = append(k.Env, corev1.EnvVar{Name: e.Name, Value: value})
	}
	for _, m := range c.MountPoints {
		k.VolumeMounts = append(k.VolumeMounts, corev1.VolumeMount{Name: m.SourceVolume, MountPath: m.ContainerPath, ReadOnly: m.ReadOnly})
	}
	if h := c.HealthCheck; h != nil && len(h.Command) > 1 {
		command := h.Command[1:]
		if h.Command[0] == "CMD-SHELL" {
			command = []string{"/bin/sh", "-c", h.Command[1]}
		}
		k.ReadinessProbe = &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
			InitialDelaySeconds: h.StartPeriod, PeriodSeconds: h.Interval, TimeoutSeconds: h.Timeout, FailureThreshold: h.Retries, SuccessThreshold: 1,
		}
	}
	k.SecurityContext = securityContext(c)
	return k, nil
}

// securityContext is the user and the root of a container.
func securityContext(c containerDefinition) *corev1.SecurityContext {
	out := &corev1.SecurityContext{}
	if c.ReadonlyRootFilesystem {
		yes := true
		out.ReadOnlyRootFilesystem = &yes
	}
	user, group, _ := strings.Cut(c.User, ":")
	for _, id := range []struct {
		said string
		to   **int64
	}{{user, &out.RunAsUser}, {group, &out.RunAsGroup}} {
		if n, err := strconv.ParseInt(id.said, 10, 64); err == nil {
			*id.to = &n
		}
	}
	return out
}
