// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// FilesBelow returns the paths of all files and directories below a directory, relative to it, for Backend.Left.
// A missing directory has none.
func FilesBelow(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file or directory was removed during the walk
		}
		if err == nil && path != dir {
			names = append(names, strings.TrimPrefix(path, dir+string(filepath.Separator)))
		}
		return err
	})
	return names, err
}

var leftoverChecks = []Check{{
	Name: "leftovers/none", Why: "what pods leave at the backend costs money each month, or a quota, until nothing can be made any more",
	Run: func(c *C) {
		if c.backend.Left == nil {
			c.Skipf("the harness cannot list what is at the backend")
		}
		for _, kind := range slices.Sorted(maps.Keys(c.backend.Kept)) {
			if k := c.backend.Kept[kind]; k.Most <= 0 || k.Rule == "" {
				c.Fatalf("Backend.Kept of %s: want Most above 0, and a Rule", kind)
			}
		}
		c.openProvider()
		before, err := c.backend.Left()
		if err != nil {
			c.Fatalf("list what is at the backend: %v", err)
		}
		first := c.h.Many / 2
		c.runLives("first", first, true)
		c.runLives("second", c.h.Many-first, false)
		c.awaitCondition("the backend to be as it was before the pods", func() (bool, string) {
			after, err := c.backend.Left()
			if err != nil {
				return false, err.Error()
			}
			more := c.describeMore(before, after)
			return more == "", more
		})
	},
}}

// runLives runs n pods through their lives: some run until they are deleted, and some end by themselves before. They use variables and
// files from other objects, as pods of users do. With restart, the daemon restarts while they run.
func (c *C) runLives(round string, n int, restart bool) {
	var pods []*corev1.Pod
	ends := func(i int) bool { return i%3 == 1 && !c.restarts }
	for i := range n {
		p := stayingProgram()
		if ends(i) {
			p = program.Program{Stay: c.h.Tick}
		}
		pods = append(pods, c.podWithObjects(fmt.Sprintf("%s-%d", round, i), i, p))
	}
	if c.backend.LoseAnswer != nil && !restart && n > 0 {
		c.backend.LoseAnswer()
	}
	for _, pod := range pods {
		c.objects.add(pod)
		if err := c.createAgain(pod); err != nil {
			c.Fatalf("CreatePod of %s: %v", pod.Name, err)
		}
	}
	for i, pod := range pods {
		if ends(i) {
			c.untilPod(pod, "to end", isTerminal)
		} else {
			c.untilPod(pod, "to run", isRunning)
		}
	}
	if restart {
		c.reopenProvider()
		c.awaitList(pods...)
	}
	for _, pod := range pods {
		c.removePod(pod, 1)
	}
	for _, pod := range pods { // its end was reported; the repeated call may succeed or fail
		if err := c.tryDelete(pod, 0); err != nil {
			c.Logf("DeletePod of %s, which is gone: %v", pod.Name, err)
		}
	}
}

// createAgain calls CreatePod until it succeeds, at most a few times.
func (c *C) createAgain(pod *corev1.Pod) (err error) {
	for range 4 {
		if err = c.tryCreate(c.ctx, pod); err == nil {
			return nil
		}
	}
	return err
}

// podWithObjects returns pod number i. It takes variables from other objects, and files if the provider declares them.
func (c *C) podWithObjects(name string, i int, p program.Program) *corev1.Pod {
	pod := c.newPod(name, p)
	main, key := &pod.Spec.Containers[0], corev1.LocalObjectReference{Name: objectName}
	main.Env = append(main.Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: key, Key: "password"}}})
	if i%2 == 1 {
		main.Env = append(main.Env, corev1.EnvVar{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}})
	}
	d, ok := c.openProvider().provider.(capability.Declarer)
	if !ok || !d.Capabilities().Has(capability.ObjectVolumes) {
		return pod
	}
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: objectName, DefaultMode: modePointer(0o644)}}
	if i%2 == 1 {
		source = corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			DefaultMode: modePointer(0o644), Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		}}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: source})
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data", ReadOnly: true})
	return pod
}

// describeMore describes the new things at the backend, except those that a rule allows; "" if there are none.
func (c *C) describeMore(before, after map[string][]string) string {
	var said []error
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		left := slices.DeleteFunc(slices.Clone(after[kind]), func(name string) bool { return slices.Contains(before[kind], name) })
		if n, most := len(left), c.backend.Kept[kind].Most; n > most {
			slices.Sort(left)
			said = append(said, fmt.Errorf("after %d lives of pods %d %s are left, want at most %d: %s", c.h.Many, n, kind, most, strings.Join(left[:min(n, 10)], ", ")))
		}
	}
	if err := errors.Join(said...); err != nil {
		return err.Error()
	}
	return ""
}
