// SPDX-License-Identifier: Apache-2.0

package podcerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Requests creates and reads requests; certapi.API is an implementation.
type Requests interface {
	Ask(ctx context.Context, r certapi.Request) (name string, err error)
	Answer(ctx context.Context, namespace, node, name string) (certapi.Answer, error)
}

// Config has the parts of a Manager. All fields are required.
type Config struct {
	Requests Requests
	// Account returns the UID of a service account.
	Account func(ctx context.Context, namespace, name string) (types.UID, error)
	// Node returns the name and the UID of the node.
	Node func(ctx context.Context) (name string, uid types.UID, err error)
	// Recorder records a warning event of a pod if the signer refuses its next certificate.
	Recorder record.EventRecorder
	// Remember records every key, with its purpose and a unique name, for redaction: no text about the pod may contain the key.
	Remember func(pod types.UID, purpose, name string, key []byte)
}

// Manager keeps the certificates of pods. It is safe for concurrent use.
type Manager struct {
	cfg Config

	mu   sync.Mutex
	pods map[types.UID]map[string]*slot // by request; guarded by mu
}

// New returns a manager without pods.
func New(cfg Config) *Manager { return &Manager{cfg: cfg, pods: map[types.UID]map[string]*slot{}} }

// Certificate is a key with its certificate, both in PEM.
type Certificate struct {
	Key, Chain []byte
	ExpiresAt  time.Time
}

// errNotIssued is the kubelet's error for an undecided request.
var errNotIssued = errors.New("credential bundle is not issued yet")

// slot is the state of one certificate. The goroutine that holds busy may request a certificate, and owns the other fields.
type slot struct {
	purpose string        // the source of the certificate in JSON, which is the key of the slot
	busy    chan struct{} // holds one element during a request
	looked  bool          // the content of the volume was read
	have    *credential   // nil: none
	asked   *asked        // the request in progress; nil: none
	refused error         // why there will be no other certificate, or nil
}

// credential is an issued certificate with its key.
type credential struct {
	key, chain    []byte
	ends, refresh time.Time
}

func (c *credential) isValid(now time.Time) bool { return c != nil && now.Before(c.ends) }

// Forget drops the certificates of a pod.
func (m *Manager) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}

// Get returns the certificate of source, which must be in a projected volume of the pod. pod is the API server's copy, which Get does not change. had
// is the content of the volume from an earlier process: the key and then the certificates, in PEM. Get waits a few seconds for the first certificate,
// and then returns errNotIssued.
func (m *Manager) Get(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (Certificate, error) {
	if !projectsCertificate(pod, source) {
		return Certificate{}, errdefs.InvalidInputf("pod %s/%s has no projected volume with such a certificate of %q", pod.Namespace, pod.Name, source.SignerName)
	}
	s, err := m.slotOf(pod.UID, source)
	if err != nil {
		return Certificate{}, err
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return Certificate{}, fmt.Errorf("wait for the certificate of pod %s/%s: %w", pod.Namespace, pod.Name, context.Cause(ctx))
	}
	if !s.looked {
		s.looked, s.have = true, adoptCredential(had, source.KeyType, time.Now())
		if s.have != nil {
			m.cfg.Remember(pod.UID, s.purpose, "kept", s.have.key)
		}
	}
	if s.have == nil || !time.Now().Before(s.have.refresh) {
		err = m.renewCertificate(ctx, s, pod, source)
	}
	if !s.have.isValid(time.Now()) {
		if err == nil {
			err = errNotIssued
		}
		return Certificate{}, err
	}
	if err != nil && !errors.Is(err, errNotIssued) && s.refused == nil {
		log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("the certificate is not renewed; the present certificate is still valid and stays in use")
	}
	return Certificate{Key: s.have.key, Chain: s.have.chain, ExpiresAt: s.have.ends}, nil
}

// slotOf returns the slot of a certificate.
func (m *Manager) slotOf(uid types.UID, source *corev1.PodCertificateProjection) (*slot, error) {
	purpose, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	slots := m.pods[uid]
	if slots == nil {
		slots = map[string]*slot{}
		m.pods[uid] = slots
	}
	s := slots[string(purpose)]
	if s == nil {
		s = &slot{purpose: string(purpose), busy: make(chan struct{}, 1)}
		slots[s.purpose] = s
	}
	return s, nil
}

// projectsCertificate reports whether a volume of the pod requests such a certificate.
func projectsCertificate(pod *corev1.Pod, source *corev1.PodCertificateProjection) bool {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if own := projected.Sources[j].PodCertificate; own != nil && reflect.DeepEqual(own, source) {
				return true
			}
		}
	}
	return false
}
