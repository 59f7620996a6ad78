// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"runtime/debug"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReleaseOfTheLibraries(t *testing.T) {
	module := func(path, version string, replaced *debug.Module) *debug.Module {
		return &debug.Module{Path: path, Version: version, Replace: replaced}
	}
	api := module("k8s.io/api", "v0.1.0", nil)
	for _, tc := range []struct {
		libraries []*debug.Module
		want      string
	}{
		{[]*debug.Module{api, module("k8s.io/client-go", "v0.37.1", nil)}, "v1.37.1"},
		{[]*debug.Module{module("k8s.io/client-go", "v0.37.1", module("example/client-go", "v0.36.0", nil))}, "v1.36.0"},
		{[]*debug.Module{module("k8s.io/client-go", "v0.37.1", module("./local", "", nil))}, "v0.0.0"},
		{[]*debug.Module{api}, "v0.0.0"},
		{nil, "v0.0.0"},
	} {
		if got := releaseOf(tc.libraries); got != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.libraries, got, tc.want)
		}
	}
}

func TestReadyNodeKeepsTransitionTime(t *testing.T) {
	then, now := metav1.NewTime(time.Unix(1000, 0)), time.Unix(2000, 0)
	for _, tc := range []struct {
		name       string
		conditions []corev1.NodeCondition
		want       int64
	}{
		{"no condition", nil, 2000},
		{"not known before", []corev1.NodeCondition{{Type: corev1.NodeReady}}, 2000},
		{"not ready before", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: then}}, 2000},
		{"ready before", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: then}}, 1000},
	} {
		before := &corev1.Node{Status: corev1.NodeStatus{Conditions: tc.conditions}}
		got := readyNode(before, now).Status.Conditions
		if len(got) != 1 || got[0].Status != corev1.ConditionTrue || got[0].LastTransitionTime.Unix() != tc.want || got[0].LastHeartbeatTime.Unix() != 2000 {
			t.Errorf("%s: got %+v", tc.name, got)
		}
		if before.Status.Phase != "" {
			t.Errorf("%s: the node itself was changed", tc.name)
		}
	}
}
