// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// fieldOf returns a field of the home pod in the format of the downward API.
func fieldOf(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return labelLines(pod.Labels), nil
	case "metadata.annotations":
		return labelLines(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	}
	if key, ok := subscriptKey(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscriptKey(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	return "", errdefs.InvalidInputf("field %q is not one of the downward API", path)
}

// subscriptKey returns KEY of field['KEY'].
func subscriptKey(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// labelLines formats labels like a kubelet in downward API files.
func labelLines(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%v=%q", k, m[k]))
	}
	return strings.Join(out, "\n")
}
