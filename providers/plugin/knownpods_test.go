// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSpecsOutliveAListThatIsNotComplete checks that an empty answer does not drop the specs that a restarted
// plugin must get again.
func TestSpecsOutliveAListThatIsNotComplete(t *testing.T) {
	given := time.Now()
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: podKey(uid)}}
	}
	fresh := func() *known {
		return &known{pods: map[podKey]sentPod{
			"runs": {pod: pod("runs"), at: given}, "stops": {pod: pod("stops"), at: given}, "new": {pod: pod("new"), at: given.Add(time.Hour)},
		}}
	}
	for name, test := range map[string]struct {
		listed   []*corev1.Pod
		complete bool
		want     []string
	}{
		"empty":                {nil, false, []string{"runs", "new"}},
		"has all":              {[]*corev1.Pod{pod("runs"), pod("stops")}, false, []string{"runs", "stops", "new"}},
		"complete":             {[]*corev1.Pod{pod("stops")}, true, []string{"stops", "new"}},
		"complete and without": {nil, true, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := fresh()
			k.markLeaving("stops")
			k.keepListed(test.listed, test.complete, given.Add(time.Minute))
			if len(k.pods) != len(test.want) {
				t.Errorf("kept are %v, want %q", k.pods, test.want)
			}
			for _, uid := range test.want {
				if k.get(podKey(uid)) == nil {
					t.Errorf("pod %s is forgotten", uid)
				}
			}
		})
	}
}
