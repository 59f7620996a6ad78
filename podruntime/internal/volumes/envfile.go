// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// maxEnvFile bounds the size of a file of variables.
const maxEnvFile = 1 << 20

// EnvFiles returns pod, or a copy of it, with the values of the container's variables from files of volumes
// (fileKeyRef). Call it when the container starts, before its environment is resolved.
func (v *Volumes) EnvFiles(pod *corev1.Pod, container string) (*corev1.Pod, error) {
	fromFile := func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil }
	find := func(pod *corev1.Pod) *corev1.Container {
		for c := range allContainers(pod) {
			if c.Name == container {
				return c
			}
		}
		return nil
	}
	if c := find(pod); c == nil || !slices.ContainsFunc(c.Env, fromFile) {
		return pod, nil
	}
	defer v.locks.lock(pod.UID)()
	pod = pod.DeepCopy()
	c := find(pod)
	var absent []string
	for i := range c.Env {
		if !fromFile(c.Env[i]) {
			continue
		}
		ref := c.Env[i].ValueFrom.FileKeyRef
		value, err := v.envFile(pod, ref)
		switch {
		case err != nil:
			return nil, err
		case value == "" && ptr.Deref(ref.Optional, false):
			absent = append(absent, c.Env[i].Name)
			continue
		case value == "":
			return nil, fmt.Errorf("environment variable key %q not found in file %q", ref.Key, ref.Path)
		}
		// The content of a file contains no references to other variables.
		c.Env[i].Value, c.Env[i].ValueFrom = strings.ReplaceAll(value, "$", "$$"), nil
	}
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return fromFile(e) && slices.Contains(absent, e.Name) })
	return pod, nil
}

// envFile returns the value of one variable, or "" if it is missing.
func (v *Volumes) envFile(pod *corev1.Pod, ref *corev1.FileKeySelector) (string, error) {
	i := slices.IndexFunc(pod.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == ref.VolumeName })
	if i < 0 || !isPlainName(ref.VolumeName) {
		return "", fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	memory := onMemory(&pod.Spec.Volumes[i])
	dir := v.volumeDir(pod.UID, ref.VolumeName, memory)
	if !v.isStanding(dir, memory) {
		return "", fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", ref.VolumeName)
	}
	text, err := readWithin(dir, ref.Path)
	if err != nil {
		return "", errors.New("couldn't parse env file") // the cause may reveal files of the machine
	}
	value, err := parseEnv(text, ref.Key)
	if err != nil {
		return "", errors.New("couldn't parse env file")
	}
	return value, nil
}

// readWithin reads an ordinary file of limited size. A container may have replaced it, for example by a pipe, so the open does not wait for a writer.
func readWithin(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(errors.New("not an ordinary file"), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err == nil && len(text) > maxEnvFile {
		err = errors.New("too large")
	}
	return string(text), err
}

// parseEnv returns the value of a variable in a file of lines NAME='value', or "" if it is missing. A value may span lines, and is used unchanged.
// Before the variable, only such lines, comments and empty lines are allowed.
func parseEnv(text, key string) (string, error) {
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || strings.TrimRight(name, " \t") != name {
			return "", fmt.Errorf("not a variable: %d characters", len(line))
		}
		if strings.TrimLeft(value, " \t") != value { // as in a shell, a blank ends the value
			if name == key {
				return "", nil
			}
			continue
		}
		value, ok = strings.CutPrefix(value, "'")
		if !ok {
			return "", fmt.Errorf("value of %s: not in single quotes", name)
		}
		all := value
		if text != "" {
			all += "\n" + text
		}
		if value, all, ok = strings.Cut(all, "'"); !ok {
			return "", fmt.Errorf("value of %s: no closing quote", name)
		}
		rest, after, _ := strings.Cut(all, "\n")
		if rest = strings.TrimSpace(rest); rest != "" && !strings.HasPrefix(rest, "#") {
			return "", fmt.Errorf("value of %s: something after the closing quote", name)
		}
		if name == key {
			return value, nil
		}
		text = after
	}
	return "", nil
}
