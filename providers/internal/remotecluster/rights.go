// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Right is a set of RBAC permissions in the remote cluster: verbs on resources or subresources, such as pods/log.
// With a Name it is for that object in the namespace default.
type Right struct {
	Verbs     []string
	Group     string
	Resources []string
	Name      string
}

// Rights returns the permissions that the configuration needs in the remote cluster. Reading metrics is not
// included, because only statistics need it.
func (c Config) Rights() []Right {
	pods := []string{"get", "list", "watch", "create", "patch", "delete"}
	if c.Owner != nil { // the controller of the owner creates the pods
		pods = []string{"get", "list", "watch", "patch", "delete"}
	}
	all := []Right{
		{Verbs: pods, Resources: []string{"pods"}},
		{Verbs: []string{"list", "watch", "create", "update", "delete"}, Resources: []string{"configmaps", "secrets"}},
		{Verbs: []string{"get"}, Resources: []string{"pods/log"}},
		{Verbs: []string{"get", "create"}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward"}},
		{Verbs: []string{"list", "watch"}, Resources: []string{"events"}},
	}
	if c.Owner != nil {
		all = append(all, Right{Verbs: []string{"get", "list", "watch", "create", "delete"}, Group: c.Owner.Resource.Group, Resources: []string{c.Owner.Resource.Resource}})
	}
	if c.Namespace == "" {
		all = append(all, Right{Verbs: []string{"get", "create"}, Resources: []string{"namespaces"}},
			Right{Verbs: []string{"get"}, Resources: []string{"services"}, Name: serviceOfAPI})
	}
	if c.Capacity == nil {
		all = append(all, Right{Verbs: []string{"list", "watch"}, Resources: []string{"nodes"}})
	}
	if len(c.StorageClasses) > 0 {
		all = append(all, Right{Verbs: []string{"list", "create", "delete"}, Resources: []string{"persistentvolumeclaims"}})
	}
	if c.Global != nil {
		verbs := []string{"list", "watch", "create", "update", "delete"}
		all = append(all, Right{Verbs: verbs, Resources: []string{"services"}}, Right{Verbs: verbs, Group: "discovery.k8s.io", Resources: []string{"endpointslices"}})
	}
	return c.whereRemade(all)
}

// namespaceSuffix returns the namespace of the rights as the end of a message.
func (c *Cluster) namespaceSuffix() string {
	if c.config.Namespace == "" {
		return ""
	}
	return " in namespace " + c.config.Namespace
}

// lackedVerbs returns the forbidden verbs of a right on a resource.
func (c *Cluster) lackedVerbs(ctx context.Context, right Right, resource string) (verbs []string, err error) {
	resource, part, _ := strings.Cut(resource, "/")
	namespace := c.config.Namespace
	switch {
	case right.Name != "":
		namespace = metav1.NamespaceDefault
	case resource == "nodes", resource == "namespaces":
		namespace = ""
	}
	for _, verb := range right.Verbs {
		answer, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: right.Group, Resource: resource, Subresource: part, Name: right.Name,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}
