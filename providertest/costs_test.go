// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// counting counts the created pods and their containers.
type counting struct {
	*inprocess.Provider
	mu   *sync.Mutex
	made map[string]map[types.UID]int // guarded by mu; pods, and how many containers each has, by namespace
}

func (c counting) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	c.mu.Lock()
	if c.made[pod.Namespace] == nil {
		c.made[pod.Namespace] = map[types.UID]int{}
	}
	c.made[pod.Namespace][pod.UID] = len(pod.Spec.InitContainers) + len(pod.Spec.Containers)
	c.mu.Unlock()
	return c.Provider.CreatePod(ctx, pod)
}

// everything declares all features, so that every check runs. A check of a feature that the backend lacks fails
// at once, after it has made its pods.
type everything struct{ counting }

func (everything) Capabilities() capability.Declaration {
	return capability.All().LacksFields("no check is about it", capability.SELinux, "seLinuxOptions").Accept(capability.SELinux)
}

// measure runs every check and returns pods, containers and seconds by name.
func measure(t *testing.T, many int) map[string][3]int {
	var mu sync.Mutex
	made := map[string]map[types.UID]int{}
	measured := map[string][3]int{}
	h := inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
		return everything{counting{p, &mu, made}}
	})
	h.Many = many
	synctest.Test(t, func(t *testing.T) {
		r, err := providertest.Verify(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, k := range r.Results {
			pods, containers := made["contract-"+strings.ReplaceAll(k.Name, "/", "-")], 0
			for _, n := range pods {
				containers += n
			}
			took := k.Took
			if k.Outcome == providertest.Failed {
				took = 0 // the check waited for a feature that this backend lacks
			}
			measured[k.Name] = [3]int{len(pods), containers, int(math.Round(took.Round(100 * time.Millisecond).Seconds()))}
		}
	})
	return measured
}

// TestCosts checks the table of costs. A program uses this table to announce the costs of a run before the run.
func TestCosts(t *testing.T) {
	ten, twenty := measure(t, 10), measure(t, 20)
	costs := map[string][4]int{}
	for name, m := range ten {
		more := twenty[name]
		ofMany := (more[0] - m[0]) / 10
		costs[name] = [4]int{m[0] - 10*ofMany, m[1] - 10*ofMany, ofMany, m[2]}
		if got := costs[name]; more[0] != got[0]+20*ofMany || more[1] != got[1]+20*ofMany {
			t.Errorf("check %s makes %d pods and %d containers for 10, and %d and %d for 20: that is no straight line", name, m[0], m[1], more[0], more[1])
		}
	}
	providertest.Costs(t, costs)
}
