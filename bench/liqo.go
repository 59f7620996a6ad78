// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// secretOfTenant is the Secret with the access of Liqo's virtual kubelet to the lower cluster.
const secretOfTenant = "foreign"

// kinds are the resources of the objects here, by kind.
var kinds = map[string]schema.GroupVersionResource{
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"Namespace":                {Version: "v1", Resource: "namespaces"},
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"ForeignCluster":           {Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"},
	"VirtualNode":              {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "virtualnodes"},
	"NamespaceMap":             {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "namespacemaps"},
	"ShadowPod":                {Group: "offloading.liqo.io", Version: "v1beta1", Resource: "shadowpods"},
}

// tenantObjects are the objects that peering and offloading make for a virtual node of Liqo: its namespace, its
// access, its description, and the mapping of the upper cluster's namespaces to namespaces of the lower one.
const tenantObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: ` + secretOfTenant + `, namespace: %[1]s}
data: {kubeconfig: %[3]s}
---
apiVersion: core.liqo.io/v1beta1
kind: ForeignCluster
metadata: {name: foreign, labels: {liqo.io/remote-cluster-id: foreign}}
spec: {clusterID: foreign}
---
apiVersion: offloading.liqo.io/v1beta1
kind: VirtualNode
metadata: {name: %[2]s, namespace: %[1]s, labels: {liqo.io/remote-cluster-id: foreign}}
spec:
  clusterID: foreign
  createNode: true
  kubeconfigSecretRef: {name: ` + secretOfTenant + `}
  offloadingPatch: {tolerations: [{operator: Exists}]}
  resourceQuota: {hard: {cpu: 1k, memory: 1Ti, pods: 1M}}
---
apiVersion: offloading.liqo.io/v1beta1
kind: NamespaceMap
metadata: {name: foreign, namespace: %[1]s, labels: {liqo.io/remote-cluster-id: foreign, liqo.io/remoteID: foreign, liqo.io/replication: "true"}}
spec: {desiredMapping: {%[2]s: %[2]s}}
status: {currentMapping: {%[2]s: {remoteNamespace: %[2]s, phase: Accepted}}}
`

// makeTenant creates these objects.
func makeTenant(ctx context.Context, m *machine, admin, tenant, prefix string, access []byte) error {
	return createObjects(ctx, admin, fmt.Appendf(nil, tenantObjects, tenant, prefix, base64.StdEncoding.EncodeToString(access)))
}

// defineKinds makes Liqo's kinds in a cluster, and returns when they can be used.
func (a onLiqo) defineKinds(ctx context.Context, admin string) error {
	files, err := filepath.Glob(filepath.Join(a.folder, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no definitions in %s: run make bench-liqo", a.folder)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read definition: %w", err)
		}
		if err := createObjects(ctx, admin, text); err != nil {
			return err
		}
	}
	client, err := dynamicClient(admin)
	if err != nil {
		return err
	}
	for _, kind := range []string{"ForeignCluster", "VirtualNode", "NamespaceMap", "ShadowPod"} {
		for {
			_, err := client.Resource(kinds[kind]).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				break
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("list %s: %w", kind, err)
			}
			if err := waitFor(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("wait for the kind %s: %w", kind, err)
			}
		}
	}
	return nil
}

func dynamicClient(kubeconfig string) (dynamic.Interface, error) {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	access.QPS = -1
	return dynamic.NewForConfig(access)
}

// createObjects makes the objects of a text, with their status. Existing objects stay unchanged.
func createObjects(ctx context.Context, kubeconfig string, text []byte) error {
	client, err := dynamicClient(kubeconfig)
	if err != nil {
		return err
	}
	objects, err := parseObjects(text)
	if err != nil {
		return err
	}
	for _, object := range objects {
		api := client.Resource(kinds[object.GetKind()]).Namespace(object.GetNamespace())
		made, err := api.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if status := object.Object["status"]; err == nil && status != nil && object.GetKind() != "CustomResourceDefinition" {
			made.Object["status"] = status
			_, err = api.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// parseObjects returns the objects in a text. Only a few kinds are supported.
func parseObjects(text []byte) (objects []*unstructured.Unstructured, _ error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read object: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if _, known := kinds[object.GetKind()]; !known {
			return nil, fmt.Errorf("object of the kind %q", object.GetKind())
		}
		objects = append(objects, object)
	}
}
