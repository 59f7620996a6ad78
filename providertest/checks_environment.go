// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

var environment = []Check{
	{
		Name: "environment/literal", Why: "programs are configured by variables",
		Run: func(c *C) {
			c.hasVariables("literal", []corev1.EnvVar{{Name: "COLOR", Value: "green and blue"}}, "COLOR=green and blue")
		},
	},
	{
		Name: "environment/empty", Why: "a variable without a value takes away the value that the image gives it",
		Run: func(c *C) { c.hasVariables("empty", []corev1.EnvVar{{Name: "EMPTY"}}, "EMPTY=") },
	},
	{
		Name: "environment/objects", Why: "configuration and passwords come from ConfigMaps and Secrets",
		Run: func(c *C) {
			key := corev1.LocalObjectReference{Name: objectName}
			c.hasVariables("objects", []corev1.EnvVar{
				{Name: "SHAPE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: key, Key: "shape"}}},
				{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: key, Key: "password"}}},
			}, "SHAPE=round", "PASSWORD="+secretValue)
		},
	},
	{
		Name: "environment/fields", Why: "programs find out who they are by the downward API",
		Run: func(c *C) {
			field := func(name, path string) corev1.EnvVar {
				return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
			}
			c.hasVariables("fields", []corev1.EnvVar{
				field("POD", "metadata.name"), field("NS", "metadata.namespace"), field("APP", "metadata.labels['app']"), field("NODE", "spec.nodeName"),
			}, "POD=fields", "NS="+c.ns, "APP=contract", "NODE="+nodeName)
		},
	},
	{
		Name: "environment/own", Why: "two containers of a pod have each their own variables",
		Run: func(c *C) {
			c.needsPrint()
			pod := c.newPod("own", c.printingProgram(program.Program{Env: true, Stay: c.h.Tick}))
			c.addContainer(pod, "other", c.printingProgram(program.Program{Env: true, Stay: c.h.Tick}))
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ONE", Value: "1"}}
			pod.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "TWO", Value: "2"}}
			one := c.printedLines(pod, func(lines []string) bool {
				return slices.Contains(lines, "ONE=1") && slices.Contains(c.logLines(pod, "other"), "TWO=2")
			})
			two := c.logLines(pod, "other")
			if !slices.Contains(one, "ONE=1") || slices.Contains(one, "TWO=2") || !slices.Contains(two, "TWO=2") || slices.Contains(two, "ONE=1") {
				c.Errorf("main has %q, other has %q", one, two)
			}
		},
	},
}

// hasVariables checks the environment of a container that prints its variables.
func (c *C) hasVariables(name string, env []corev1.EnvVar, want ...string) {
	c.needsPrint()
	pod := c.newPod(name, c.printingProgram(program.Program{Env: true, Stay: c.h.Tick}))
	pod.Spec.Containers[0].Env = env
	got := c.printedLines(pod, func(lines []string) bool {
		return !slices.ContainsFunc(want, func(line string) bool { return !slices.Contains(lines, line) })
	})
	for _, line := range want {
		if !slices.Contains(got, line) {
			c.Errorf("the environment lacks %q: it is %q", line, got)
		}
	}
}

// logLines returns the lines of the log of a container.
func (c *C) logLines(pod *corev1.Pod, container string) []string {
	text := c.readLog(pod, container, api.ContainerLogOpts{})
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// podWithVolume returns a pod with a volume at /data and a container that shows files.
func (c *C) podWithVolume(name string, source corev1.VolumeSource, p program.Program) *corev1.Pod {
	c.needsPrint()
	pod := c.newPod(name, c.printingProgram(p))
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return pod
}

// checkOutput runs a pod and compares its output.
func (c *C) checkOutput(pod *corev1.Pod, want ...string) {
	if got := c.printedLines(pod, func(lines []string) bool { return slices.Equal(lines, want) }); !slices.Equal(got, want) {
		c.Errorf("the container shows %q, want %q", got, want)
	}
}

func modePointer(m int32) *int32 { return &m }

var files = []Check{
	{
		Name: "files/config-map", Why: "programs read configuration from files",
		Needs: []capability.Feature{capability.ObjectVolumes},
		Run: func(c *C) {
			c.checkOutput(c.podWithVolume("config-map", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: objectName}, DefaultMode: modePointer(0o644),
			}}, program.Program{Show: []string{"/data/color", "/data/shape"}}), "file /data/color 0644", "green", "file /data/shape 0644", "round")
		},
	},
	{
		Name: "files/mode", Why: "ssh and databases refuse keys that others can read",
		Needs: []capability.Feature{capability.ObjectVolumes},
		Run: func(c *C) {
			c.checkOutput(c.podWithVolume("mode", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: objectName, DefaultMode: modePointer(0o400)}},
				program.Program{Show: []string{"/data/password"}}), "file /data/password 0400", secretValue)
		},
	},
	{
		Name: "files/items", Why: "a volume has the keys that are asked for, under the names that are asked for, and no others",
		Needs: []capability.Feature{capability.ObjectVolumes},
		Run: func(c *C) {
			c.checkOutput(c.podWithVolume("items", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: objectName}, DefaultMode: modePointer(0o644),
				Items: []corev1.KeyToPath{{Key: "color", Path: "etc/paint", Mode: modePointer(0o600)}},
			}}, program.Program{Show: []string{"/data/etc/paint", "/data/shape"}}), "file /data/etc/paint 0600", "green", "no file /data/shape")
		},
	},
	{
		Name: "files/downward", Why: "labels and names reach programs as files too",
		Needs: []capability.Feature{capability.ObjectVolumes},
		Run: func(c *C) {
			c.checkOutput(c.podWithVolume("downward", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
				DefaultMode: modePointer(0o644), Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			}}, program.Program{Show: []string{"/data/name"}}), "file /data/name 0644", "downward")
		},
	},
	{
		Name: "files/empty-dir", Why: "an init container leaves files for the others in an emptyDir",
		Needs: []capability.Feature{capability.EmptyDir, capability.InitContainers},
		Run:   func(c *C) { c.handsOver("empty-dir", corev1.StorageMediumDefault) },
	},
	{
		Name: "files/memory", Why: "an emptyDir in memory is for what must not be on a disk",
		Needs: []capability.Feature{capability.MemoryEmptyDir, capability.InitContainers},
		Run:   func(c *C) { c.handsOver("memory", corev1.StorageMediumMemory) },
	},
	{
		Name: "files/sub-path", Why: "a part of a volume is mounted where a program wants it",
		Needs: []capability.Feature{capability.SubPath, capability.ObjectVolumes},
		Run: func(c *C) {
			pod := c.podWithVolume("sub-path", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: objectName}, DefaultMode: modePointer(0o644),
			}}, program.Program{Show: []string{"/data/paint"}})
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data/paint", SubPath: "color", ReadOnly: true}}
			c.checkOutput(pod, "file /data/paint 0644", "green")
		},
	},
}

// handsOver checks that an emptyDir passes a file from an init container to the main container.
func (c *C) handsOver(name string, medium corev1.StorageMedium) {
	pod := c.podWithVolume(name, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}, program.Program{Show: []string{"/data/left"}})
	init := c.newContainer(pod, "init", program.Program{Write: []string{"/data/left"}})
	init.VolumeMounts = pod.Spec.Containers[0].VolumeMounts
	pod.Spec.InitContainers = []corev1.Container{init}
	c.checkOutput(pod, "file /data/left 0644", "written")
}
