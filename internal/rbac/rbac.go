// SPDX-License-Identifier: Apache-2.0

// Package rbac has the table of the permissions of a node that runs as a ServiceAccount, with the reason for each permission, and generates the
// manifests from it.
//
// The guarantee: the table has exactly the permissions that a node uses: a test compares it with the audit log of an API server. It has no wildcards.
// Every permission that can be limited to the node itself is limited.
//
// Note: RBAC cannot limit a permission to the pods of a node. A holder of the token of this ServiceAccount can read every ConfigMap and
// Secret whose name it knows, and delete every pod. A node with the identity system:node:NAME cannot, and does not need these permissions.
package rbac

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Right is a permission for one kind of request of a node.
type Right struct {
	Verbs []string
	// Group and Resource identify the objects. A subresource is written as in RBAC: pods/status.
	Group, Resource string
	// Namespace is the only namespace of the right; "" means all.
	Namespace string
	// Own limits the permission to the object with the name of the node.
	Own bool
	// Needs is the feature that needs the permission; "" means every node.
	Needs Feature
	// Why describes the failure without the permission.
	Why string
	// Unseen is the reason why an ordinary run does not use the permission.
	Unseen string
}

// Feature is an optional ability of a node.
type Feature string

// The features.
const (
	// Serving is the feature to answer kubectl logs, exec and similar requests.
	Serving Feature = "serving"
	// CertificateRequests is the feature to request the serving certificate from the cluster.
	CertificateRequests Feature = "certificate requests"
	// PodTokens means that the provider requests service account tokens.
	PodTokens Feature = "pod tokens"
	// TrustBundles means that the provider gives pods the certificates of ClusterTrustBundles.
	TrustBundles Feature = "trust bundles"
	// PodCertificates means that the provider requests certificates for its pods. No shipped role has it: the API server
	// lets a node request only for its own pods, but a ServiceAccount for all pods.
	PodCertificates Feature = "pod certificates"
	// Claims means that the provider mounts PersistentVolumes.
	Claims Feature = "claims"
	// Provisioning means that the node makes PersistentVolumes in a directory of the provider. It has a separate role.
	Provisioning Feature = "provisioning"
	// EndpointSlices means that the provider reads the endpoints of Services. Roles include it only on request.
	EndpointSlices Feature = "endpoint slices"
	// ManyNodes means that one process runs several nodes.
	ManyNodes Feature = "many nodes"
	// SharedNodes means that the process shares its nodes with other processes.
	SharedNodes Feature = "shared nodes"
)

// leases is the namespace of node leases.
const leases = "kube-node-lease"

var table = []Right{
	{Verbs: []string{"create"}, Resource: "nodes", Why: "the node is registered"},
	{Verbs: []string{"get", "watch"}, Resource: "nodes", Own: true, Why: "the node sees what others write to it, and that it was deleted"},
	{Verbs: []string{"patch"}, Resource: "nodes", Own: true, Why: "labels, annotations and taints of the node are kept up to date",
		Unseen: "a node that was registered by this process has them already"},
	{Verbs: []string{"list", "watch"}, Resource: "nodes", Needs: ManyNodes, Why: "one watch is for all nodes of the process"},
	{Verbs: []string{"patch"}, Resource: "nodes/status", Own: true, Why: "the node is Ready"},
	{Verbs: []string{"get", "update"}, Group: "coordination.k8s.io", Resource: "leases", Namespace: leases, Own: true, Why: "the node has a heartbeat, and one process acts for it"},
	{Verbs: []string{"create"}, Group: "coordination.k8s.io", Resource: "leases", Namespace: leases, Why: "the node has a heartbeat"},
	{Verbs: []string{"get", "patch", "list", "delete"}, Group: "coordination.k8s.io", Resource: "leases", Namespace: leases, Needs: SharedNodes,
		Why: "processes that share nodes have a lease each, and see those of the others"},
	{Verbs: []string{"list", "watch"}, Resource: "pods", Why: "the node learns of its pods"},
	{Verbs: []string{"delete"}, Resource: "pods", Why: "pods that have stopped go"},
	{Verbs: []string{"patch"}, Resource: "pods/status", Why: "pods have a status"},
	{Verbs: []string{"list", "watch"}, Resource: "services", Why: "containers get the variables of services"},
	{Verbs: []string{"get"}, Resource: "configmaps", Why: "containers get variables from ConfigMaps"},
	{Verbs: []string{"get"}, Resource: "secrets", Why: "containers get variables from Secrets, and providers credentials to pull images"},
	{Verbs: []string{"create"}, Resource: "serviceaccounts/token", Needs: PodTokens, Why: "providers get the tokens of their pods"},
	{Verbs: []string{"list"}, Group: "certificates.k8s.io", Resource: "clustertrustbundles", Needs: TrustBundles, Why: "volumes have the certificates that they select",
		Unseen: "no volume of the run selects any"},
	{Verbs: []string{"create", "list"}, Group: "certificates.k8s.io", Resource: "podcertificaterequests", Needs: PodCertificates, Why: "volumes have the certificates that they ask for"},
	{Verbs: []string{"get"}, Resource: "serviceaccounts", Needs: PodCertificates, Why: "a request for a certificate names the UID of the service account"},
	{Verbs: []string{"get"}, Resource: "persistentvolumeclaims", Needs: Claims, Why: "pods have the PersistentVolumes that they claim", Unseen: "no pod of the run claims any"},
	{Verbs: []string{"get"}, Resource: "persistentvolumes", Needs: Claims, Why: "pods have the PersistentVolumes that they claim", Unseen: "no pod of the run claims any"},
	{Verbs: []string{"list", "watch"}, Resource: "persistentvolumeclaims", Needs: Provisioning, Why: "the node sees which claims wait for a volume on it"},
	{Verbs: []string{"list", "watch", "get", "create", "delete"}, Resource: "persistentvolumes", Needs: Provisioning, Why: "the node makes volumes, and deletes those that are released"},
	{Verbs: []string{"get"}, Group: "storage.k8s.io", Resource: "storageclasses", Needs: Provisioning, Why: "the class says what becomes of a volume that is released"},
	{Verbs: []string{"list", "watch"}, Group: "discovery.k8s.io", Resource: "endpointslices", Needs: EndpointSlices, Why: "the provider learns of the addresses behind services",
		Unseen: "no provider of the run takes services elsewhere"},
	{Verbs: []string{"create"}, Resource: "events", Why: "pods have events"},
	{Verbs: []string{"patch"}, Resource: "events", Why: "an event that comes again is counted", Unseen: "nothing went wrong twice"},
	{Verbs: []string{"create"}, Group: "authentication.k8s.io", Resource: "tokenreviews", Needs: Serving, Why: "callers with a token are known"},
	{Verbs: []string{"create"}, Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Needs: Serving, Why: "callers are allowed what they may"},
	{Verbs: []string{"create", "get"}, Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Needs: CertificateRequests,
		Why: "the node has a certificate to serve with", Unseen: "the run has its certificate in files"},
}

// All returns the permissions of a node with the features, in the order of the table.
func All(features ...Feature) (out []Right) {
	for _, r := range table {
		if r.Needs == "" || slices.Contains(features, r.Needs) {
			r.Verbs = slices.Clone(r.Verbs)
			out = append(out, r)
		}
	}
	return out
}

// Every is all features.
func Every() []Feature {
	return []Feature{Serving, CertificateRequests, PodTokens, TrustBundles, PodCertificates, Claims, Provisioning, EndpointSlices, ManyNodes, SharedNodes}
}

// Reviews returns the requests that check whether the client's identity has the permission. node is the name of the node.
func (r Right) Reviews(node string) (out []authorizationv1.SelfSubjectAccessReview) {
	resource, sub := splitResource(r.Resource)
	for _, verb := range r.Verbs {
		attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: r.Group, Resource: resource, Subresource: sub, Namespace: r.Namespace}
		if r.Own {
			attributes.Name = node
		}
		out = append(out, authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}})
	}
	return out
}
