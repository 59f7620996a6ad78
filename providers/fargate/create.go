// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// remembered is how many definitions, and how many secrets, are kept in mind: more are looked for again.
const remembered = 4096

// made are definitions and secrets that are there, so that a replica costs no request for them.
type made struct {
	turn chan struct{} // held while something is looked for or made, so that many replicas do it once

	mu  sync.Mutex
	arn map[string]string // guarded by mu; of definitions by family, and of secrets by name
	key []byte            // guarded by mu; of the names of secrets
	own map[string]kept   // guarded by mu; secrets of one pod, by name
}

// kept is a secret of one pod as it was kept last.
type kept struct {
	text [sha256.Size]byte // what its text sums up to
	arn  string
}

// mine returns the ARN of the secret of one pod: the one that is known if its text is the same, or what keep says. Each time that it is kept is a
// version of it, and Secrets Manager has a hundred.
func (m *made) mine(s secret, keep func() (string, error)) (string, error) {
	sum := sha256.Sum256([]byte(s.text))
	m.mu.Lock()
	known, ok := m.own[s.name]
	m.mu.Unlock()
	if ok && known.text == sum {
		return known.arn, nil
	}
	arn, err := keep()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.own, s.name) // one that failed may be there all the same
	if err == nil {
		if m.own == nil || len(m.own) >= remembered {
			m.own = map[string]kept{}
		}
		m.own[s.name] = kept{text: sum, arn: arn}
	}
	return arn, err
}

// lose lets the secret of one pod be kept anew: it is removed.
func (m *made) lose(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.own, name)
}

func (m *made) get(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arn[name]
}

func (m *made) set(name, arn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.arn == nil || len(m.arn) >= remembered {
		m.arn = map[string]string{}
	}
	m.arn[name] = arn
}

// forget lets all be looked for again that pods share.
func (m *made) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arn = nil
}

// once returns the ARN of a name: the one that is known, or what find says. One at a time asks.
func (m *made) once(ctx context.Context, name string, find func() (string, error)) (string, error) {
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	arn, err := find()
	if err == nil {
		m.set(name, arn)
	}
	return arn, err
}

// CreatePod runs the task of a pod. Done again, it is the same task: ECS knows the request by its token.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.create(ctx, pod); err != nil {
		return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func (p *provider) create(ctx context.Context, pod *corev1.Pod) error {
	if err := p.cache.Wait(ctx); err != nil {
		return err
	}
	if p.cache.Update(pod) {
		return nil
	}
	if err := p.mapping.refuse(pod); err != nil {
		return err
	}
	definition, err := p.definition(ctx, pod)
	if err != nil {
		if errdefs.IsInvalidInput(err) && hasOwn(pod) {
			p.leftovers.add(p.mapping.ownName(string(pod.UID))) // it may have been kept before that was seen
		}
		return err
	}
	in, err := p.mapping.task(pod, "")
	if err != nil {
		return err
	}
	arn, err := p.register(ctx, definition)
	if err != nil {
		return err
	}
	in.TaskDefinition = &arn
	before := p.watch.doubted(pod.UID)
	p.watch.doubt(pod.UID) // until there is an answer: it may be asked for and run
	task, err := p.service.run(ctx, in)
	if err != nil {
		if wasRefused(err) {
			p.made.forget() // somebody may have removed what is kept in mind
		}
		if saysNo(err) && !before {
			p.watch.sure(pod.UID)
		}
		p.cache.Hurry() // it may run: then the next round finds it
		return err
	}
	p.watch.sure(pod.UID)
	task.Tags = in.Tags
	p.cache.Accepted(pod, task)
	return nil
}

// definition returns the definition of a pod, of which the secrets are in Secrets Manager.
func (p *provider) definition(ctx context.Context, pod *corev1.Pod) (*ecs.RegisterTaskDefinitionInput, error) {
	if p.objects == nil {
		return nil, errors.New("this node has nothing of the API yet")
	}
	r, secret, err := p.resolve(ctx, pod)
	if err != nil {
		return nil, err
	}
	arns := map[string]string{}
	if secret {
		key, err := p.key(ctx)
		if err != nil {
			return nil, err
		}
		secrets, err := p.mapping.secrets(key, r)
		if err != nil {
			return nil, err
		}
		for c, s := range secrets {
			if s.own {
				arns[c], err = p.made.mine(s, func() (string, error) { return p.service.keep(ctx, s) })
			} else {
				arns[c], err = p.made.once(ctx, s.name, func() (string, error) { return p.service.keep(ctx, s) })
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return p.mapping.definition(r, arns)
}

// resolve collects what a pod takes from other objects, and says whether something of it is to be in Secrets Manager.
func (p *provider) resolve(ctx context.Context, pod *corev1.Pod) (r resolved, secret bool, err error) {
	r = resolved{pod: pod, containers: map[string]*corev1.Container{}, files: map[string][]podspec.File{}}
	for c := range containersOf(&pod.Spec) {
		full, err := p.objects.Container(ctx, pod, c.Name)
		if err != nil {
			return r, false, fmt.Errorf("container %s: %w", c.Name, err)
		}
		r.containers[c.Name] = full
		secret = secret || hasSecrets(c)
	}
	sources := podspec.Sources{Objects: p.objects, Tokens: p.tokens, Allocatable: func() corev1.ResourceList { return p.config.Capacity }}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !podspec.Written(v) {
			continue
		}
		if r.files[v.Name], _, err = sources.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i)); err != nil {
			return r, false, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		secret = true
	}
	if len(pod.Spec.ImagePullSecrets) > 0 && p.credentials != nil {
		if r.logins, err = p.credentials.PullCredentials(ctx, pod); err != nil {
			return r, false, err
		}
		secret = secret || len(r.logins) > 0
	}
	return r, secret, nil
}

// key returns the key of the names of secrets, which is in Secrets Manager and nowhere else.
func (p *provider) key(ctx context.Context) ([]byte, error) {
	known := func() []byte {
		p.made.mu.Lock()
		defer p.made.mu.Unlock()
		return p.made.key
	}
	if key := known(); key != nil {
		return key, nil
	}
	select {
	case p.made.turn <- struct{}{}:
		defer func() { <-p.made.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if key := known(); key != nil {
		return key, nil
	}
	key, err := p.service.key(ctx, p.mapping.owner.Cluster)
	if err != nil {
		return nil, err
	}
	p.made.mu.Lock()
	defer p.made.mu.Unlock()
	p.made.key = key
	return key, nil
}

// register returns the ARN of a definition. It is looked for first, as ECS takes about one registration a second.
func (p *provider) register(ctx context.Context, d *ecs.RegisterTaskDefinitionInput) (string, error) {
	return p.made.once(ctx, *d.Family, func() (string, error) {
		arn, err := p.service.definition(ctx, *d.Family)
		if errdefs.IsNotFound(err) {
			return p.service.register(ctx, d)
		}
		return arn, err
	})
}
