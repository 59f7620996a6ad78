// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
	"sigs.k8s.io/randfill"
)

var patchTime = metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

// applyStatus applies a status patch like an API server.
func applyStatus(t rapid.TB, server *corev1.Node, patch []byte) *corev1.Node {
	t.Helper()
	before, err := json.Marshal(server)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	node := &corev1.Node{}
	if err := json.Unmarshal(after, node); err != nil {
		t.Fatal(err)
	}
	return node
}

func mustStatusPatch(t rapid.TB, server *corev1.Node, want *corev1.NodeStatus, report bool) []byte {
	t.Helper()
	patch, err := StatusPatch(server, want, patchTime, report)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// inSync returns the server's node with everything in want.
func inSync(t rapid.TB, want *corev1.NodeStatus) *corev1.Node {
	t.Helper()
	return applyStatus(t, &corev1.Node{}, mustStatusPatch(t, &corev1.Node{}, want, true))
}

// reported returns a status as a provider reports it.
func reported() corev1.NodeStatus {
	return corev1.NodeStatus{
		Phase:    corev1.NodeRunning,
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")},
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "ready"},
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "Enough"},
		},
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.37.1", OperatingSystem: "linux"},
	}
}

func TestStatusPatchIsSmall(t *testing.T) {
	want := reported()
	server := inSync(t, &want)
	if patch := mustStatusPatch(t, server, &want, false); patch != nil {
		t.Fatalf("patch for an unchanged node is %s, want none", patch)
	}
	heartbeat := `{"status":{"conditions":[` +
		`{"lastHeartbeatTime":"2030-01-02T03:04:05Z","type":"MemoryPressure"},` +
		`{"lastHeartbeatTime":"2030-01-02T03:04:05Z","type":"Ready"}]}}`
	if patch := string(mustStatusPatch(t, server, &want, true)); patch != heartbeat {
		t.Errorf("heartbeat is %s, want %s", patch, heartbeat)
	}
	want.NodeInfo.KernelVersion = "6.1"
	want.Capacity[corev1.ResourceCPU] = resource.MustParse("8000m")
	want.Capacity[corev1.ResourcePods] = resource.MustParse("0.11k")
	change := `{"status":{"capacity":{"cpu":"8"},` + heartbeat[len(`{"status":{`):len(heartbeat)-2] + `,"nodeInfo":{"kernelVersion":"6.1"}}}`
	if patch := string(mustStatusPatch(t, server, &want, false)); patch != change {
		t.Errorf("patch is %s, want %s", patch, change)
	}
}

func TestTwoAddressesOfOneType(t *testing.T) {
	want := reported()
	server := inSync(t, &want)
	for _, list := range [][]string{{"10.0.0.1", "fd00::1"}, {"fd00::2", "10.0.0.1"}, {"10.0.0.9"}, {}} {
		want.Addresses = nil
		for _, ip := range list {
			want.Addresses = append(want.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		server = applyStatus(t, server, mustStatusPatch(t, server, &want, false))
		if !slices.Equal(server.Status.Addresses, want.Addresses) {
			t.Errorf("addresses are %v, want %v", server.Status.Addresses, want.Addresses)
		}
	}
}

func TestWhatOthersWroteSurvives(t *testing.T) {
	want := reported()
	server := inSync(t, &want)
	foreign := corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.Unix(1, 0)}
	server.Status.Conditions = append(server.Status.Conditions, foreign)
	server.Status.Capacity["example.com/gpu"] = resource.MustParse("2")
	server.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v", DevicePath: "/dev/v"}}
	server.Status.Images = []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: 1}}

	fresh := corev1.NodeStatus{Phase: corev1.NodePending}
	got := applyStatus(t, server, mustStatusPatch(t, server, &fresh, true)).Status
	left := corev1.NodeStatus{
		Phase:           corev1.NodePending,
		Conditions:      []corev1.NodeCondition{foreign},
		Capacity:        corev1.ResourceList{"example.com/gpu": resource.MustParse("2")},
		VolumesAttached: server.Status.VolumesAttached,
		Images:          server.Status.Images,
	}
	if len(got.Addresses) == 0 {
		got.Addresses = nil
	}
	if diff := cmp.Diff(left, got); diff != "" {
		t.Errorf("after all of ours was dropped (-want +got):\n%s", diff)
	}
}

func TestListsAreReplaced(t *testing.T) {
	want := reported()
	want.Images = []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: 1}, {Names: []string{"b"}, SizeBytes: 2}}
	server := inSync(t, &want)
	want.Images = want.Images[1:]
	server = applyStatus(t, server, mustStatusPatch(t, server, &want, false))
	if len(server.Status.Images) != 1 || server.Status.Images[0].SizeBytes != 2 {
		t.Errorf("images are %v, want b only", server.Status.Images)
	}
	want.Images = nil
	server = applyStatus(t, server, mustStatusPatch(t, server, &want, false))
	if len(server.Status.Images) != 0 {
		t.Errorf("images are %v, want none", server.Status.Images)
	}
}

func TestUnreadableOwnershipRemovesNothing(t *testing.T) {
	want := reported()
	server := inSync(t, &want)
	server.Annotations[OwnedStatusAnnotation] = "{"
	server.Status.Capacity["example.com/gpu"] = resource.MustParse("2")
	patch := string(mustStatusPatch(t, server, &want, false))
	if strings.Contains(patch, "null") || strings.Contains(patch, patchDirective) || !strings.Contains(patch, OwnedStatusAnnotation) {
		t.Errorf("patch is %s, want the annotation mended and nothing removed", patch)
	}
}

// TestOnePatchIsEnough: for any two statuses of a node, one patch leads from the first to the second. It does not change the fields of other writers.
func TestOnePatchIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawStatus(t, "first"), drawStatus(t, "second")
		server := inSync(t, first)
		foreign := drawStatus(t, "foreign")
		for _, c := range foreign.Conditions {
			c.Type = "foreign/" + c.Type
			server.Status.Conditions = append(server.Status.Conditions, c)
		}
		server = applyStatus(t, server, mustStatusPatch(t, server, second, rapid.Bool().Draw(t, "report")))
		if again := mustStatusPatch(t, server, second, false); again != nil {
			t.Fatalf("a second patch is needed: %s", again)
		}
		if !slices.Equal(byType(server.Status.Addresses), byType(second.Addresses)) {
			t.Fatalf("addresses are %v, want %v", server.Status.Addresses, second.Addresses)
		}
		if got, want := len(server.Status.Conditions), len(second.Conditions)+len(foreign.Conditions); got != want {
			t.Fatalf("%d conditions, want %d: %v", got, want, server.Status.Conditions)
		}
		if len(server.Status.Capacity) != len(second.Capacity) {
			t.Fatalf("capacity is %v, want %v", server.Status.Capacity, second.Capacity)
		}
	})
}

func drawStatus(t *rapid.T, label string) *corev1.NodeStatus {
	number := func(max int) int { return rapid.IntRange(0, max).Draw(t, label) }
	status := &corev1.NodeStatus{
		Phase:    corev1.NodePhase([]string{"", "Pending", "Running"}[number(2)]),
		NodeInfo: corev1.NodeSystemInfo{KernelVersion: []string{"", "a", "b"}[number(2)]},
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(number(2))
	for i := range 3 {
		if number(1) == 1 {
			status.Conditions = append(status.Conditions, corev1.NodeCondition{
				Type:   corev1.NodeConditionType(fmt.Sprint("C", i)),
				Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[number(2)],
				Reason: []string{"", "A", "B"}[number(2)], Message: []string{"", "a", "b"}[number(2)],
			})
		}
		if number(1) == 1 {
			if status.Capacity == nil {
				status.Capacity = corev1.ResourceList{}
			}
			status.Capacity[corev1.ResourceName(fmt.Sprint("r", i))] = *resource.NewQuantity(int64(number(3)), resource.DecimalSI)
		}
		if number(1) == 1 {
			status.Addresses = append(status.Addresses, corev1.NodeAddress{
				Type: []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName}[number(1)], Address: fmt.Sprint("a", i),
			})
		}
		if number(1) == 1 {
			status.Images = append(status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("i", i)}, SizeBytes: int64(number(2))})
		}
	}
	return status
}

// TestFieldNamesAreThoseOfTheJSON: fieldNames returns the JSON names of the fields, for random statuses and for
// fields with zero values.
func TestFieldNamesAreThoseOfTheJSON(t *testing.T) {
	f := randfill.New().NilChance(0.3).NumElements(0, 2).RandSource(rand.NewSource(1))
	for range 300 {
		var status corev1.NodeStatus
		f.Fill(&status)
		rest := plain(&status)
		if got, want := fieldNames(&rest), sortedKeys(plainFields(&rest)); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v for %+v", got, want, rest)
		}
	}
	zero := corev1.NodeStatus{Config: &corev1.NodeConfigStatus{}, Images: []corev1.ContainerImage{}, Features: &corev1.NodeFeatures{SupplementalGroupsPolicy: new(bool)}}
	if got, want := fieldNames(&zero), sortedKeys(plainFields(&zero)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v of what is given and zero", got, want)
	}
}
