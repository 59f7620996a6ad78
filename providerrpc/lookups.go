// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// lookupTimeout limits the wait for a connected node and its answer.
const lookupTimeout = 30 * time.Second

// lookups sends questions to the last connected node. It implements node.PodObjects, node.PodTokens and
// node.PullCredentials.
type lookups struct {
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	asker *asker        // guarded by mu; nil: no node is connected
	comes chan struct{} // guarded by mu; closed when asker changes
}

// asker is one Lookups stream.
type asker struct {
	questions chan *rpc.LookupQuestion
	gone      chan struct{} // closed when the stream ends

	mu      sync.Mutex
	last    uint64                            // guarded by mu
	waiting map[uint64]chan *rpc.LookupAnswer // guarded by mu
}

func newLookups() *lookups {
	return &lookups{closed: make(chan struct{}), comes: make(chan struct{})}
}

func (l *lookups) close() { l.once.Do(func() { close(l.closed) }) }

func (l *lookups) set(old, a *asker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old != nil && l.asker != old {
		return
	}
	l.asker = a
	close(l.comes)
	l.comes = make(chan struct{})
}

// awaitAsker returns the stream to the node, and waits until there is one.
func (l *lookups) awaitAsker(ctx context.Context) (*asker, error) {
	for {
		l.mu.Lock()
		a, comes := l.asker, l.comes
		l.mu.Unlock()
		if a != nil {
			return a, nil
		}
		select {
		case <-comes:
		case <-l.closed:
			return nil, errors.New("the plugin stops")
		case <-ctx.Done():
			return nil, fmt.Errorf("no node is connected to the plugin: %w", ctx.Err())
		}
	}
}

// askNode sends the question q about pod to the node, and returns the answer.
func (l *lookups) askNode(ctx context.Context, pod *corev1.Pod, q *rpc.LookupQuestion) (*rpc.LookupAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var err error
	if q.Pod, err = wire.Marshal(encoding, pod); err != nil {
		return nil, err
	}
	a, err := l.awaitAsker(ctx)
	if err != nil {
		return nil, err
	}
	answered := make(chan *rpc.LookupAnswer, 1)
	a.mu.Lock()
	a.last++
	q.Id = a.last
	a.waiting[q.Id] = answered
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, q.Id)
		a.mu.Unlock()
	}()
	select {
	case a.questions <- q:
	case <-a.gone:
		return nil, errors.New("the connection to the node broke before it answered")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-answered:
		if answer.GetError() != "" && !answer.GetObjectMissing() {
			return nil, wire.WithDetail(errors.New(answer.GetError()), answer.GetDetail())
		}
		return answer, nil
	case <-a.gone:
		return nil, errors.New("the connection to the node broke before it answered")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askObject requests an object, and decodes its JSON into into.
func (l *lookups) askObject(ctx context.Context, pod *corev1.Pod, q *rpc.LookupQuestion, resource, name string, into any) error {
	answer, err := l.askNode(ctx, pod, q)
	switch {
	case err != nil:
		return err
	case answer.GetObjectMissing():
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
	}
	return json.Unmarshal(answer.GetObjectJson(), into)
}

// ConfigMap asks the node.
func (l *lookups) ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	out := &corev1.ConfigMap{}
	q := &rpc.LookupQuestion{Ask: &rpc.LookupQuestion_ConfigMap{ConfigMap: name}}
	if err := l.askObject(ctx, pod, q, "configmaps", name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Secret asks the node.
func (l *lookups) Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	out := &corev1.Secret{}
	q := &rpc.LookupQuestion{Ask: &rpc.LookupQuestion_Secret{Secret: name}}
	if err := l.askObject(ctx, pod, q, "secrets", name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Container asks the node.
func (l *lookups) Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	out := &corev1.Container{}
	q := &rpc.LookupQuestion{Ask: &rpc.LookupQuestion_Container{Container: name}}
	if err := l.askObject(ctx, pod, q, "containers", name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Token asks the node.
func (l *lookups) Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	encoded, err := json.Marshal(source)
	if err != nil {
		return node.PodToken{}, err
	}
	answer, err := l.askNode(ctx, pod, &rpc.LookupQuestion{Ask: &rpc.LookupQuestion_TokenSourceJson{TokenSourceJson: encoded}})
	if err != nil {
		return node.PodToken{}, err
	}
	t := answer.GetToken()
	return node.PodToken{Token: t.GetToken(), ExpiresAt: time.Unix(0, t.GetExpiresUnixNano()), RefreshAt: time.Unix(0, t.GetRefreshUnixNano())}, nil
}

// PullCredentials asks the node.
func (l *lookups) PullCredentials(ctx context.Context, pod *corev1.Pod) ([]node.RegistryCredential, error) {
	answer, err := l.askNode(ctx, pod, &rpc.LookupQuestion{Ask: &rpc.LookupQuestion_PullCredentials{PullCredentials: true}})
	if err != nil {
		return nil, err
	}
	var all []node.RegistryCredential
	for _, c := range answer.GetCredentials() {
		all = append(all, node.RegistryCredential{
			Registry: c.GetRegistry(), Username: c.GetUsername(), Password: c.GetPassword(),
			IdentityToken: c.GetIdentityToken(), RegistryToken: c.GetRegistryToken(),
		})
	}
	return all, nil
}

// Lookups sends the questions of the provider, and receives the answers.
func (s *server) Lookups(stream rpc.Provider_LookupsServer) error {
	a := &asker{questions: make(chan *rpc.LookupQuestion), gone: make(chan struct{}), waiting: map[uint64]chan *rpc.LookupAnswer{}}
	s.lookups.set(nil, a)
	defer s.lookups.set(a, nil)
	defer close(a.gone)
	ended := make(chan error, 1)
	go func() { ended <- a.receiveAnswers(stream) }() // ends with the stream, which ends when this returns
	for {
		select {
		case q := <-a.questions:
			if err := stream.Send(q); err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-s.lookups.closed:
			return nil
		}
	}
}

func (a *asker) receiveAnswers(stream rpc.Provider_LookupsServer) error {
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		a.mu.Lock()
		waiting := a.waiting[answer.GetId()]
		delete(a.waiting, answer.GetId())
		a.mu.Unlock()
		if waiting != nil {
			waiting <- answer
		}
	}
}
