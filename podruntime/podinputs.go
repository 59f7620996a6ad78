// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// podInputs reads the objects that pods name from the API server. Its fields are set before the first pod, and constant afterwards.
type podInputs struct {
	objects     podinputs.PodObjects
	credentials podinputs.PullCredentials
}

// pullCredentials returns the registry credentials of a pod.
func (p *podInputs) pullCredentials(ctx context.Context, pod *corev1.Pod) ([]podinputs.RegistryCredential, error) {
	if p.credentials == nil {
		return nil, nil
	}
	return p.credentials.PullCredentials(ctx, pod)
}

// UsePodObjects sets the reader of ConfigMaps, Secrets and environments.
func (r *Runtime) UsePodObjects(objects podinputs.PodObjects) {
	r.inputs.objects = objects
	r.volumes.UseObjects(objects)
}

// UsePodTokens sets the source of service account tokens.
func (r *Runtime) UsePodTokens(tokens podinputs.PodTokens) { r.volumes.UseTokens(tokens) }

// UsePodTrustBundles sets the reader of ClusterTrustBundles.
func (r *Runtime) UsePodTrustBundles(bundles podinputs.PodTrustBundles) {
	r.volumes.UseBundles(bundles)
}

// UsePodCertificates sets the source of certificates for pods.
func (r *Runtime) UsePodCertificates(certificates podinputs.PodCertificates) {
	r.volumes.UseCertificates(certificates)
}

// UsePodClaims sets the finder of PersistentVolumes.
func (r *Runtime) UsePodClaims(claims podinputs.PodClaims) { r.volumes.UseClaims(claims) }

// ProvisionsVolumes reports whether the configuration has a directory for the node's PersistentVolumes.
func (r *Runtime) ProvisionsVolumes() bool { return r.volumes.Provisions() }

// MakeVolume makes the directory of a PersistentVolume.
func (r *Runtime) MakeVolume(_ context.Context, name string) (string, error) {
	return r.volumes.MakeVolume(name)
}

// RemoveVolume removes the directory of a PersistentVolume.
func (r *Runtime) RemoveVolume(_ context.Context, name string) error {
	return r.volumes.RemoveVolume(name)
}

// UsePullCredentials sets the source of registry credentials.
func (r *Runtime) UsePullCredentials(credentials podinputs.PullCredentials) {
	r.inputs.credentials = credentials
}
