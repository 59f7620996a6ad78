// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// writeFiles writes the Secret with the tokens and downward API files of a pod, if it has any. It keeps an
// existing token until its renewal is due, also after a restart.
func (c *copies) writeFiles(ctx context.Context, home *corev1.Pod, n need) error {
	if len(n.files)+len(n.tokens) == 0 {
		return nil
	}
	name := c.of.config.Home.filesName(home)
	data := maps.Clone(n.files)
	have := c.of.cache.findSecret(n.namespace, name)
	refresh := keptUntil(have, n)
	if len(n.tokens) > 0 && time.Now().After(refresh) {
		refresh = time.Time{}
		for key, source := range n.tokens {
			if c.of.tokens == nil {
				return errors.New("this node has no tokens for pods")
			}
			token, err := c.of.tokens.Token(ctx, home, source)
			if err != nil {
				return fmt.Errorf("token of pod %s/%s: %w", home.Namespace, home.Name, err)
			}
			data[key] = []byte(token.Token)
			if refresh.IsZero() || token.RefreshAt.Before(refresh) {
				refresh = token.RefreshAt
			}
		}
	} else {
		for key := range n.tokens {
			data[key] = have.Data[key]
		}
	}
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.namespace, Name: name, Labels: c.of.homeLabels(map[string]string{LabelUID: string(home.UID)}),
			Annotations: map[string]string{AnnotationNamespace: home.Namespace, AnnotationName: home.Name},
		},
		Data: data, Type: corev1.SecretTypeOpaque,
	}
	if !refresh.IsZero() {
		want.Annotations[annotationRefresh] = refresh.UTC().Format(time.RFC3339)
	}
	if err := c.putSecret(ctx, want); err != nil {
		return fmt.Errorf("write the files of pod %s/%s: %w", home.Namespace, home.Name, err)
	}
	return nil
}

// keptUntil returns the time when the tokens in a Secret must be renewed, or the zero time if a token is missing.
func keptUntil(have *corev1.Secret, n need) time.Time {
	if have == nil {
		return time.Time{}
	}
	for key := range n.tokens {
		if len(have.Data[key]) == 0 {
			return time.Time{}
		}
	}
	at, err := time.Parse(time.RFC3339, have.Annotations[annotationRefresh])
	if err != nil {
		return time.Time{}
	}
	return at
}

// need has the objects that a pod needs in the remote cluster, and the inputs from which they were computed.
type need struct {
	generation          int64
	labels, annotations map[string]string
	there               types.UID // the UID of the remote pod

	namespace string
	refs      []Ref
	files     map[string][]byte
	tokens    map[string]*corev1.ServiceAccountTokenProjection
}

// podNeed returns the needs of a translated pod.
func (tr *Translation) podNeed(home *corev1.Pod) need {
	return need{
		generation: home.Generation, labels: home.Labels, annotations: home.Annotations,
		namespace: tr.Pod.Namespace, refs: tr.Refs, files: tr.Files, tokens: tr.Tokens,
	}
}

// needOf returns the needs of an existing remote pod. It caches them until either pod changes.
func (c *Cluster) needOf(home, there *corev1.Pod) (need, error) {
	c.mu.Lock()
	n, known := c.needs[home.UID]
	c.mu.Unlock()
	same := known && n.generation == home.Generation && maps.Equal(n.labels, home.Labels) && maps.Equal(n.annotations, home.Annotations)
	if same && n.there == there.UID {
		return n, nil
	}
	tr, err := c.translateThere(home, there)
	if err != nil {
		return need{}, err
	}
	n = tr.podNeed(home)
	n.there = there.UID
	c.mu.Lock()
	if _, is := c.tracked[home.UID]; is { // the pod is still tracked
		c.needs[home.UID] = n
	}
	c.mu.Unlock()
	return n, nil
}

// refreshNeeds updates the objects that the node's pods need; shared objects are updated once. It stops at the
// first pod if a cluster does not answer: otherwise, during an outage of the remote cluster, it would request a
// token for every pod. The order of the pods is random.
func (c *Cluster) refreshNeeds(ctx context.Context) {
	c.mu.Lock()
	tracked := maps.Clone(c.tracked)
	c.mu.Unlock()
	done := map[object]bool{}
	for uid, at := range tracked {
		if ctx.Err() != nil {
			return
		}
		remote := c.findUID(uid)
		if remote == nil || isTerminal(remote.Status.Phase) {
			continue // the node recreates a missing pod, and a terminated pod needs no copies
		}
		now := c.homePod(at.Namespace, at.Name)
		if now == nil || now.UID != uid {
			continue // the pod is being deleted, and gets no more tokens
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		n, err := c.needOf(now, remote)
		dark := false
		if err == nil {
			err = errors.Join(c.copies.putObjects(bounded, now, n, done), c.markNamespace(bounded, now, remote))
			dark = err != nil && noAnswer(err)
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			log.G(ctx).WithError(err).WithField("pod", at.String()).Warn("What the pod needs is not up to date in the remote cluster")
		}
		if dark {
			return
		}
	}
}
