// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// freshWait is how long an API server waits for an unseen revision.
const freshWait = 3 * time.Second

func (c *client) List(ctx context.Context, opts metav1.ListOptions) (*corev1.PodList, error) {
	if err := c.beginCall(ctx, "list", ""); err != nil {
		return nil, err
	}
	list, err := c.list(opts)
	if apierrors.IsTimeout(err) {
		select {
		case <-time.After(freshWait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		list, err = c.list(opts)
	}
	return answerCall(c, "list", "", list, err)
}

// list answers by resource version: without a version the answer is current, with "0" as old as allowed, with
// another version at least as new as that.
func (c *client) list(opts metav1.ListOptions) (*corev1.PodList, error) {
	selector, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	least, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	a := c.api
	a.mu.Lock()
	defer a.mu.Unlock()
	pods, revision := a.pods, a.revision
	if l := a.lag; l != nil && (l.all || opts.ResourceVersion != "") {
		pods, revision = a.podsAt(l.revision), l.revision
	}
	if least > revision {
		return nil, tooLarge(least, revision)
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}}
	for _, pod := range pods {
		attributes := fields.Set{"metadata.name": pod.Name, "spec.nodeName": pod.Spec.NodeName}
		if (c.namespace == "" || c.namespace == pod.Namespace) && selector.Matches(attributes) {
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	}
	slices.SortFunc(list.Items, func(x, y corev1.Pod) int {
		return strings.Compare(keyOf(x.Namespace, x.Name), keyOf(y.Namespace, y.Name))
	})
	return list, nil
}

func parseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	return n, nil
}

// tooLarge returns the error of a lagging API server.
func tooLarge(asked, have int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// Watch returns the events after a resource version. Field selectors are not
// served.
func (c *client) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if err := c.beginCall(ctx, "watch", ""); err != nil {
		return nil, err
	}
	since, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest("resourceVersion: " + err.Error())
	}
	a := c.api
	a.mu.Lock()
	defer a.mu.Unlock()
	if since < a.oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w := newPodWatch(a, since)
	if a.lag != nil {
		w.until = a.lag.revision
	}
	w.catchUp()
	a.watches[w] = true
	if seconds := opts.TimeoutSeconds; seconds != nil {
		w.expire = time.AfterFunc(time.Duration(*seconds)*time.Second, w.endSilently)
	}
	return w, nil
}

// endSilently ends the watch without an event, as API servers do after some minutes.
func (w *podWatch) endSilently() {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	delete(w.api.watches, w)
	w.endWatch()
}
