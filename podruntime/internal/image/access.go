// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mayUse reports whether the pod may use an image that is already on the machine, by the rules of kubelets since 1.35. An image without a recorded
// pull is available to all pods. A pulled image is available to pods with the credentials of a pull under this name, or to all pods if it was once
// pulled without credentials. For other pods, the registry decides.
func (p *Puller) mayUse(ctx context.Context, req Request, name, id string) (bool, error) {
	use, known := p.pulls.findUse(id, name)
	if !known || use.Anybody {
		return true, nil
	}
	if len(use.Credentials) == 0 {
		return false, nil
	}
	auths, err := p.pullCredentials(ctx, req)
	if err != nil {
		return false, err
	}
	for _, auth := range auths {
		if auth != nil && use.hasCredential(p.pulls.credentialDigest(auth)) {
			return true, nil
		}
	}
	return false, nil
}

// refuseUse returns the error for a pod that may neither use the image nor pull it.
func (p *Puller) refuseUse(req Request) *Error {
	message := fmt.Sprintf("Container image %q is present with pull policy of Never but does not have the proper credentials set to pull it", req.Image)
	p.sendEvent(req, corev1.EventTypeWarning, ErrNeverPull, message)
	return &Error{Reason: ErrNeverPull, Message: message, RetryAfter: inspectAgain}
}

// rememberPull records the credentials of a successful pull.
func (p *Puller) rememberPull(name, id string, auth *runtimeapi.AuthConfig) *Error {
	if err := p.pulls.recordPulled(id, name, auth); err != nil {
		return &Error{Reason: ErrPull, Message: fmt.Sprintf("remember who may use image %q: %v", name, err), RetryAfter: inspectAgain}
	}
	return nil
}

// Prune drops the records of images that are gone from the machine.
func (p *Puller) Prune(ctx context.Context) error {
	before, changes := p.pulls.knownFiles()
	if len(before) == 0 {
		return nil
	}
	images, err := p.cfg.Images.ListImages(ctx, nil)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	for _, image := range images {
		delete(before, fileOf(image.GetId()))
	}
	return p.pulls.forgetFiles(before, changes)
}

// repositoryOf returns the name of an image without tag and digest.
func repositoryOf(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return name[:colon]
	}
	return name
}
