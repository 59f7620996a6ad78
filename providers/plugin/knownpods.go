// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

type podKey = types.UID

// sentPod is a pod as it was last sent to the plugin.
type sentPod struct {
	pod     *corev1.Pod
	at      time.Time
	leaving bool // the deletion was requested
}

// known stores the pods for a plugin that does not store specs. After a restart, the plugin gets the specs again,
// like a built-in provider after a restart of the program.
type known struct {
	mu   sync.Mutex
	pods map[podKey]sentPod // guarded by mu
}

// rememberPod stores the pod, if the plugin does not store specs.
func (p *plugin) rememberPod(pod *corev1.Pod) {
	if !p.agreed.hasAbility(rpc.Ability_ABILITY_POD_OBJECTS) {
		return
	}
	p.known.mu.Lock()
	defer p.known.mu.Unlock()
	p.known.pods[pod.UID] = sentPod{pod: pod, at: time.Now()}
}

// markLeaving records that the deletion of the pod was requested.
func (k *known) markLeaving(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if sent, is := k.pods[uid]; is {
		sent.leaving = true
		k.pods[uid] = sent
	}
}

// keepListed forgets the pods that are missing in a list that began at the given time. An incomplete list may
// lack running pods; then keepListed forgets only leaving pods.
func (k *known) keepListed(listed []*corev1.Pod, complete bool, began time.Time) {
	there := make(map[podKey]bool, len(listed))
	for _, pod := range listed {
		there[pod.UID] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, sent := range k.pods {
		if !there[uid] && (complete || sent.leaving) && sent.at.Before(began) {
			delete(k.pods, uid)
		}
	}
}

func (k *known) get(uid types.UID) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[uid].pod
}

// restorePods sends a restarted plugin the specs of the pods that it still has. It does not create pods, because
// the node decides about lost pods.
func (p *plugin) restorePods(ctx context.Context, s *session) error {
	p.mu.Lock()
	restarted := p.instance != s.hello.GetInstance()
	p.mu.Unlock()
	if !restarted || !p.agreed.hasAbility(rpc.Ability_ABILITY_POD_OBJECTS) {
		return nil
	}
	pods, _, err := s.list(ctx)
	if err != nil {
		kind, _ := wire.Decode(ctx, err, nil)
		return fmt.Errorf("list the pods of the plugin after its restart: %w", kind)
	}
	for _, pod := range pods {
		sent := p.known.get(pod.UID)
		if sent == nil {
			continue
		}
		request, err := s.podRequest(sent)
		if err != nil {
			return err
		}
		_, err = s.UpdatePod(ctx, request)
		if kind, _ := wire.Decode(ctx, err, nil); kind != nil && !errdefs.IsNotFound(kind) && !errdefs.IsInvalidInput(kind) {
			return fmt.Errorf("give the plugin pod %s/%s again after its restart: %w", pod.Namespace, pod.Name, kind)
		}
	}
	return nil
}
