// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAddressesAgree holds that the single address is the first of its list, as the API server requires, and that omitted addresses are
// kept.
func TestAddressesAgree(t *testing.T) {
	for _, tt := range []struct {
		name           string
		before, report []string // the single address, and the list
		want           []string // the list
	}{
		{name: "none"},
		{name: "one", report: []string{"10.0.0.1"}, want: []string{"10.0.0.1"}},
		{name: "a list", report: []string{"", "10.0.0.1", "fd00::1"}, want: []string{"10.0.0.1", "fd00::1"}},
		{name: "one that is not the first of the list", report: []string{"10.0.0.2", "10.0.0.1", "10.0.0.2"}, want: []string{"10.0.0.1", "10.0.0.2"}},
		{name: "another one", before: []string{"10.0.0.1", "10.0.0.1"}, report: []string{"10.0.0.2"}, want: []string{"10.0.0.2"}},
		{name: "left out", before: []string{"10.0.0.1", "10.0.0.1"}, want: []string{"10.0.0.1"}},
	} {
		set := func(s *corev1.PodStatus, ips []string) {
			for i, ip := range ips {
				if i == 0 {
					s.PodIP, s.HostIP = ip, ip
					continue
				}
				s.PodIPs, s.HostIPs = append(s.PodIPs, corev1.PodIP{IP: ip}), append(s.HostIPs, corev1.HostIP{IP: ip})
			}
		}
		api, report, want := pod("a"), &corev1.PodStatus{Phase: corev1.PodRunning}, &corev1.PodStatus{}
		set(&api.Status, tt.before)
		set(report, tt.report)
		if len(tt.want) > 0 {
			set(want, append([]string{tt.want[0]}, tt.want...))
		}
		_, after := publish(t, View{API: api, Report: report})
		got := &corev1.PodStatus{PodIP: after.Status.PodIP, PodIPs: after.Status.PodIPs, HostIP: after.Status.HostIP, HostIPs: after.Status.HostIPs}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got): %s", tt.name, d)
		}
	}
}

// TestNodeAddressIsForPodsWithout holds that pods without a host IP get the address of the node, and keep it once it is published.
func TestNodeAddressIsForPodsWithout(t *testing.T) {
	bare, node := &corev1.PodStatus{Phase: corev1.PodRunning}, []corev1.HostIP{{IP: "192.0.2.7"}, {IP: "2001:db8::7"}}
	_, first := publish(t, View{API: pod("a"), Report: bare, HostIPs: node})
	if s := first.Status; s.HostIP != "192.0.2.7" || cmp.Diff(node, s.HostIPs) != "" {
		t.Errorf("got %q %v, want the node's", s.HostIP, s.HostIPs)
	}
	_, later := publish(t, View{API: first, Report: bare, HostIPs: []corev1.HostIP{{IP: "192.0.2.8"}}})
	if s := later.Status; s.HostIP != "192.0.2.7" {
		t.Errorf("the node has another one now: got %q", s.HostIP)
	}
	_, own := publish(t, View{API: pod("a"), Report: runningStatus(), HostIPs: node})
	if s := own.Status; s.HostIP != "192.0.2.1" {
		t.Errorf("the pod has its own: got %q", s.HostIP)
	}
}

// TestStartTimeIsTheFirst holds that the start time is the first reported one, else the time of the first report.
func TestStartTimeIsTheFirst(t *testing.T) {
	earlier, later := metav1.Time{Time: now.Add(-time.Hour)}, metav1.Time{Time: now.Add(-time.Minute)}
	for name, tt := range map[string]struct{ before, report, want *metav1.Time }{
		"nobody tells":       {nil, nil, &metav1.Time{Time: now}},
		"the report tells":   {nil, &earlier, &earlier},
		"another one before": {&earlier, &later, &earlier},
		"none since":         {&earlier, nil, &earlier},
	} {
		api := pod("a")
		api.Status.StartTime = tt.before
		_, after := publish(t, View{API: api, Report: &corev1.PodStatus{Phase: corev1.PodRunning, StartTime: tt.report}})
		if got := after.Status.StartTime; !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestReportLeavesOutWhatStays holds that an omitted phase and the node's fields are kept, but the reason and message are not.
func TestReportLeavesOutWhatStays(t *testing.T) {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	full := &corev1.PodStatus{
		Phase: corev1.PodRunning, Reason: "R", Message: "m", Resize: corev1.PodResizeStatusDeferred,
		Resources: &corev1.ResourceRequirements{Requests: list}, AllocatedResources: list,
	}
	brief := func(p *corev1.Pod) *corev1.PodStatus {
		s := p.Status
		return &corev1.PodStatus{Phase: s.Phase, Reason: s.Reason, Message: s.Message, Resize: s.Resize, Resources: s.Resources, AllocatedResources: s.AllocatedResources}
	}
	_, after := publish(t, View{API: pod("a"), Report: full})
	if d := cmp.Diff(full, brief(after)); d != "" {
		t.Errorf("a full report (-want +got): %s", d)
	}
	want := *full
	want.Reason, want.Message = "", ""
	_, after = publish(t, View{API: after, Report: &corev1.PodStatus{}})
	if d := cmp.Diff(&want, brief(after)); d != "" {
		t.Errorf("an empty one (-want +got): %s", d)
	}
}

// TestEndWithoutAReport checks the conditions and their generation.
func TestEndWithoutAReport(t *testing.T) {
	v := View{API: pod("a"), Stopped: true, Failure: Refuse(), Generation: 2, Reflected: 2}
	_, after := publish(t, v)
	if got := briefConditions(after)[corev1.PodReady]; got != "False PodFailed" || after.Status.ObservedGeneration != 2 {
		t.Errorf("got Ready %q, generation %d", got, after.Status.ObservedGeneration)
	}
	declared := pod("a", inPhase(corev1.PodFailed))
	if w, status := Publish(View{API: declared, Now: now}); w != Keep {
		t.Errorf("somebody else declared it failed: %s", cmp.Diff(declared.Status, status))
	}
	running := pod("a", inPhase(corev1.PodRunning))
	if w, status := Publish(View{API: running, Stopped: true, Now: now}); w != Keep {
		t.Errorf("it has stopped, and nobody wanted it to: %s", cmp.Diff(running.Status, status))
	}
}
