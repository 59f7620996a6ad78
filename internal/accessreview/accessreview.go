// SPDX-License-Identifier: Apache-2.0

// Package accessreview checks the permissions of the client's identity before a request needs them: it waits until the Node authorizer knows a pod,
// and checks whether the identity may list objects.
//
// The Node authorizer lets a node read the objects that its pods name. The authorizer has its own watch of pods, which may lag behind the node's
// watch. It then refuses a legitimate request, and the refusal looks like an attack in the audit log.
//
// The guarantee: for an identity system:node:NAME, Wait first asks with a SelfSubjectAccessReview whether the authorizer knows the pod. Every
// identity may send that request, and a negative result is not a refusal in the audit log. The wait ends after Patience. Other identities do not
// wait.
//
// Note: the answer comes from one API server. If the next request goes to another API server that lags further behind, it may still be
// refused, and is retried.
package accessreview

import (
	"context"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// Patience is the longest time to wait for the authorizer. A caller without the permission then still sends its request, because the refusal has
	// the reason.
	Patience = 10 * time.Second

	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Checker waits for the permissions of one identity. A nil Checker never waits.
type Checker struct {
	client kubernetes.Interface

	mu       sync.Mutex
	asked    bool // isNode is known
	node     bool
	answered map[authorizationv1.ResourceAttributes]bool // by MayList
}

// New returns a checker for the identity of client. It sends no request.
func New(client kubernetes.Interface) *Checker {
	return &Checker{client: client, answered: map[authorizationv1.ResourceAttributes]bool{}}
}

// Refused drops the cached permission to list the objects of a core resource in a namespace. Call it after the API server has refused a list, for
// example after a change of the role.
func (c *Checker) Refused(resource, namespace string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answered, listAttributes(resource, namespace))
}

func listAttributes(resource, namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "list", Resource: resource, Namespace: namespace}
}

// MayList reports whether the identity may list all objects of a core resource in a namespace. It asks the API server once, so that no request is
// refused. For a node, it does not ask, because the permissions of a node depend on the object's name. Without an answer, it returns true: a caller
// that is refused then calls Refused and asks again.
func (c *Checker) MayList(ctx context.Context, resource, namespace string) bool {
	if c == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if c.isNode(ctx) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock() // other callers wait for the same answer
	if !c.asked {
		return true
	}
	attributes := listAttributes(resource, namespace)
	if allowed, has := c.answered[attributes]; has {
		return allowed
	}
	allowed, err := c.isAllowed(ctx, attributes)
	if err != nil {
		return true
	}
	c.answered[attributes] = allowed
	return allowed
}

func (c *Checker) isAllowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	got, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return got.Status.Allowed, nil
}

// Wait returns when the identity has the permission in attributes, when it never has to wait, after Patience, or when ctx ends. It does not report
// which, because the request itself shows it.
func (c *Checker) Wait(ctx context.Context, attributes authorizationv1.ResourceAttributes) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if !c.isNode(ctx) {
		return
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if allowed, err := c.isAllowed(ctx, attributes); err != nil || allowed {
			return
		}
		if !sleep.For(ctx, pause) {
			return
		}
	}
}

// isNode reports whether the Node authorizer decides for the identity. It asks once. While the answer is unknown, no caller waits.
func (c *Checker) isNode(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock() // other callers wait for the same answer
	if c.asked {
		return c.node
	}
	got, err := c.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		log.G(ctx).WithError(err).Debug("cannot find out the own identity: objects of new pods may be refused at first")
		return false
	}
	c.asked, c.node = true, strings.HasPrefix(got.Status.UserInfo.Username, "system:node:")
	return c.node
}
