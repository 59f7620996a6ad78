// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// User is the user of an image. Without either field, it is root.
type User struct {
	ID   *int64
	Name string
}

// Instance is a container to be made.
type Instance struct {
	Pod *corev1.Pod
	// Container has its environment resolved.
	Container *corev1.Container
	// Spec are the resources of the container in the pod, and Hash identifies its other inputs.
	Spec *corev1.ResourceRequirements
	Hash string
	// Attempt counts the instances of the container, from 0.
	Attempt uint32
	// ImageRef is the image as the runtime knows it.
	ImageRef string
	// ImageUser is the user of the image.
	ImageUser User
	Mounts    []*runtimeapi.Mount
	// Target is the ID of the container whose processes the instance sees, or "".
	Target string
}

// Container returns the configuration of an instance of a container.
func (s Settings) Container(in Instance) (*runtimeapi.ContainerConfig, error) {
	c := in.Container
	security, err := s.containerSecurity(in.Pod, c, in.ImageUser)
	if err != nil {
		return nil, err
	}
	if in.Target != "" && security.NamespaceOptions.Pid == runtimeapi.NamespaceMode_CONTAINER {
		security.NamespaceOptions.Pid, security.NamespaceOptions.TargetId = runtimeapi.NamespaceMode_TARGET, in.Target
	}
	labels := s.identityLabels(in.Pod)
	labels[LabelContainerName] = c.Name
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: in.ImageRef, UserSpecifiedImage: c.Image},
		Command:     c.Command,
		Args:        c.Args,
		WorkingDir:  c.WorkingDir,
		Envs:        envVars(c.Env),
		Mounts:      in.Mounts,
		Labels:      labels,
		Annotations: containerAnnotations(in),
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: s.Resources(in.Pod, c), SecurityContext: security},
	}, nil
}

// envVars leaves out variables without a value: the address of a pod without an address of its own.
func envVars(vars []corev1.EnvVar) []*runtimeapi.KeyValue {
	all := make([]*runtimeapi.KeyValue, 0, len(vars))
	for _, v := range vars {
		if v.ValueFrom == nil {
			all = append(all, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
		}
	}
	return all
}

func stopSignal(c *corev1.Container) runtimeapi.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+string(*c.Lifecycle.StopSignal)])
}
