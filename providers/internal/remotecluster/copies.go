// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// object is a ConfigMap or Secret in the remote cluster.
type object struct{ kind, namespace, name string }

// String returns the key of the object in the index byCopy.
func (o object) String() string { return o.kind + "/" + o.namespace + "/" + o.name }

// copies manages the copied ConfigMaps and Secrets in the remote cluster. It removes objects that no pod refers
// to.
type copies struct {
	of         *Cluster
	wake       chan struct{}
	everything atomic.Bool // check all copies, not only released ones

	mu       sync.Mutex               // never held during requests, because watch handlers need it
	pending  map[object]int           // guarded by mu; the number of pods in creation that need the copy
	removing map[object]chan struct{} // guarded by mu; closed at the end of the removal
	released map[object]bool          // guarded by mu; copies that a deleted pod referred to

	written written // copies that are not in the watch cache yet
}

func (c *copies) init(of *Cluster) {
	c.of, c.wake = of, make(chan struct{}, 1)
	c.pending, c.removing, c.released = map[object]int{}, map[object]chan struct{}{}, map[object]bool{}
}

// checkAll requests a check of all copies.
func (c *copies) checkAll() {
	c.everything.Store(true)
	c.wakeUp()
}

func (c *copies) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// releaseObjects allows the removal of the objects of a deleted pod, if no other pod refers to them.
func (c *copies) releaseObjects(pod *corev1.Pod) {
	c.mu.Lock()
	for _, o := range namedObjects(pod) {
		c.released[o] = true
	}
	c.mu.Unlock()
	c.wakeUp()
}

// holdObjects prevents the removal of objects until release is called. It waits for the end of a removal in
// progress.
func (c *copies) holdObjects(all []object) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(all); i++ {
		if removed := c.removing[all[i]]; removed != nil {
			c.mu.Unlock()
			<-removed
			c.mu.Lock()
			i = -1 // start again: the removal of another copy may have begun
		}
	}
	for _, o := range all {
		c.pending[o]++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, o := range all {
			if c.pending[o]--; c.pending[o] == 0 {
				delete(c.pending, o)
			}
		}
	}
}

// putObjects writes the objects of a pod that differ from the remote ones. It skips objects in done, and adds the
// others to it. done may be nil.
func (c *copies) putObjects(ctx context.Context, home *corev1.Pod, n need, done map[object]bool) error {
	for _, r := range n.refs {
		o := object{r.Kind, n.namespace, c.of.config.Home.CopyName(r.Kind, r.Namespace, r.Name)}
		if done[o] {
			continue
		}
		if err := c.copyOf(ctx, home, n.namespace, r); err != nil {
			return err
		}
		if done != nil {
			done[o] = true
		}
	}
	return c.writeFiles(ctx, home, n)
}

// copyOf writes the copy of an object of the home cluster. As with a kubelet, the copy of a deleted object stays
// while pods need it.
func (c *copies) copyOf(ctx context.Context, home *corev1.Pod, namespace string, r Ref) error {
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: c.of.config.Home.CopyName(r.Kind, r.Namespace, r.Name), Labels: c.of.config.Home.Labels(),
		Annotations: map[string]string{AnnotationNamespace: r.Namespace, AnnotationName: r.Name},
	}
	var err error
	if r.Kind == KindConfigMap {
		var from *corev1.ConfigMap
		if from, err = c.of.objects.ConfigMap(ctx, home, r.Name); err == nil {
			err = c.putConfigMap(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: from.Data, BinaryData: from.BinaryData})
			return describeError(err, "copy", r)
		}
	} else {
		var from *corev1.Secret
		if from, err = c.of.objects.Secret(ctx, home, r.Name); err == nil {
			err = c.putSecret(ctx, &corev1.Secret{ObjectMeta: meta, Data: from.Data, Type: typeOf(from.Type)})
			return describeError(err, "copy", r)
		}
	}
	there := c.of.cache.configMap(namespace, meta.Name) != nil || c.of.cache.findSecret(namespace, meta.Name) != nil
	if apierrors.IsNotFound(err) && (r.Optional || there) {
		return nil
	}
	return describeError(err, "read", r)
}

func describeError(err error, doing string, r Ref) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s/%s: %w", doing, r.Kind, r.Namespace, r.Name, err)
}

// typeOf returns the type of the copy. It keeps only the types that a kubelet reads, because other types have
// validation rules or controllers.
func typeOf(t corev1.SecretType) corev1.SecretType {
	if t == corev1.SecretTypeDockerConfigJson || t == corev1.SecretTypeDockercfg {
		return t
	}
	return corev1.SecretTypeOpaque
}

func (c *copies) putConfigMap(ctx context.Context, want *corev1.ConfigMap) error {
	api, o := c.of.client.CoreV1().ConfigMaps(want.Namespace), object{KindConfigMap, want.Namespace, want.Name}
	cached := c.of.cache.configMap(want.Namespace, want.Name)
	have := latestCopy(&c.written, o, cached)
	if have != nil && equalMaps(have.Data, want.Data) && equalMaps(have.BinaryData, want.BinaryData) {
		return nil
	}
	if have == nil {
		made, err := api.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return recordWritten(&c.written, o, cached, made, err)
		}
	}
	made, err := api.Update(ctx, want, metav1.UpdateOptions{})
	return recordWritten(&c.written, o, cached, made, err)
}

func (c *copies) putSecret(ctx context.Context, want *corev1.Secret) error {
	api, o := c.of.client.CoreV1().Secrets(want.Namespace), object{KindSecret, want.Namespace, want.Name}
	cached := c.of.cache.findSecret(want.Namespace, want.Name)
	have := latestCopy(&c.written, o, cached)
	if have != nil && equalMaps(have.Data, want.Data) && have.Type == want.Type && have.Annotations[annotationRefresh] == want.Annotations[annotationRefresh] {
		return nil
	}
	if have != nil && have.Type != want.Type { // the type of a Secret is immutable
		if err := api.Delete(ctx, want.Name, deleteByUID(have.UID)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		have = nil
	}
	if have == nil {
		made, err := api.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return recordWritten(&c.written, o, cached, made, err)
		}
	}
	made, err := api.Update(ctx, want, metav1.UpdateOptions{})
	return recordWritten(&c.written, o, cached, made, err)
}

// equalMaps reports whether two maps are equal; an empty map equals nil.
func equalMaps[V any](a, b map[string]V) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// deleteByUID returns options that delete only the object with the UID.
func deleteByUID(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// collectUnneeded removes objects that no pod refers to. It checks the objects of deleted pods or, with
// everything, all objects, because a deletion may have been missed. The cost of checking everything grows with
// the number of pods, so it is not done for every deletion. collectUnneeded stops if the remote cluster does not
// answer.
func (c *copies) collectUnneeded(ctx context.Context, everything bool) {
	c.mu.Lock()
	released := c.released
	c.released = map[object]bool{}
	c.mu.Unlock()
	if !everything {
		for o := range released {
			if there := c.of.cache.findCopy(o); there != nil && !c.removeCopy(ctx, o, there) {
				return
			}
		}
		return
	}
	c.written.pruneShown(func(o object) string {
		if there := c.of.cache.findCopy(o); there != nil {
			return there.GetResourceVersion()
		}
		return ""
	})
	for _, o := range c.of.cache.secrets.GetStore().List() {
		s := o.(*corev1.Secret)
		if !c.removeCopy(ctx, object{KindSecret, s.Namespace, s.Name}, s) {
			return
		}
	}
	for _, o := range c.of.cache.configMaps.GetStore().List() {
		m := o.(*corev1.ConfigMap)
		if !c.removeCopy(ctx, object{KindConfigMap, m.Namespace, m.Name}, m) {
			return
		}
	}
}

// removeCopy removes an object that no pod refers to, and reports whether the remote cluster answers. Creates of
// pods that need the object wait meanwhile; other creates do not.
func (c *copies) removeCopy(ctx context.Context, o object, there metav1.Object) bool {
	if c.of.namesCopy(o) {
		return true
	}
	if !c.beginRemoval(o) {
		return true
	}
	defer c.endRemoval(o)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer c.written.recordRemoved(o, there.GetResourceVersion())
	var err error
	if o.kind == KindSecret {
		err = c.of.client.CoreV1().Secrets(o.namespace).Delete(ctx, o.name, deleteByUID(there.GetUID()))
	} else {
		err = c.of.client.CoreV1().ConfigMaps(o.namespace).Delete(ctx, o.name, deleteByUID(there.GetUID()))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		log.G(ctx).WithError(err).WithField("name", o.namespace+"/"+o.name).Warn("A copy that no pod needs is still in the remote cluster")
		return !noAnswer(err)
	}
	return true
}

// beginRemoval marks an object as being removed. It returns false if a pod needs the object, because one may have
// been created since the first check.
func (c *copies) beginRemoval(o object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[o] > 0 || c.of.namesCopy(o) {
		return false
	}
	c.removing[o] = make(chan struct{})
	return true
}

// endRemoval ends the removal of an object.
func (c *copies) endRemoval(o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.removing[o])
	delete(c.removing, o)
}

// namedObjects returns the ConfigMaps and Secrets that a remote pod refers to.
func namedObjects(pod *corev1.Pod) (all []object) {
	add := func(kind, name string) { all = append(all, object{kind, pod.Namespace, name}) }
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.ConfigMap != nil:
			add(KindConfigMap, v.ConfigMap.Name)
		case v.Secret != nil:
			add(KindSecret, v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					add(KindConfigMap, s.ConfigMap.Name)
				} else if s.Secret != nil {
					add(KindSecret, s.Secret.Name)
				}
			}
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, from := range list[i].EnvFrom {
				if from.ConfigMapRef != nil {
					add(KindConfigMap, from.ConfigMapRef.Name)
				} else if from.SecretRef != nil {
					add(KindSecret, from.SecretRef.Name)
				}
			}
			for _, e := range list[i].Env {
				if e.ValueFrom == nil {
					continue
				} else if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
					add(KindConfigMap, r.Name)
				} else if r := e.ValueFrom.SecretKeyRef; r != nil {
					add(KindSecret, r.Name)
				}
			}
		}
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		add(KindSecret, s.Name)
	}
	return all
}
