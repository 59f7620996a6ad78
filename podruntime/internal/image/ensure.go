// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
)

// Ensure returns the image, and pulls it first if necessary and allowed.
func (p *Puller) Ensure(ctx context.Context, req Request) (Image, *Error) {
	name, err := Normalize(req.Image)
	if err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", req.Image, err)
		p.sendEvent(req, corev1.EventTypeWarning, "InspectFailed", message)
		return Image{}, &Error{Reason: ErrName, Message: message, RetryAfter: lastDelay}
	}
	spec := &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: req.Image, RuntimeHandler: req.Handler, Annotations: req.Pod.Annotations}
	if req.Policy == corev1.PullAlways && len(req.Pod.Spec.ImagePullSecrets) == 0 {
		return p.pullImage(ctx, req, spec, nil)
	}
	found, err := p.inspectImage(ctx, spec)
	if req.Policy == corev1.PullAlways {
		return p.pullImage(ctx, req, spec, found)
	}
	switch {
	case err != nil:
		message := fmt.Sprintf("Failed to inspect image %q: %v", req.Image, err)
		p.sendEvent(req, corev1.EventTypeWarning, "InspectFailed", message)
		return Image{}, &Error{Reason: ErrInspect, Message: message, RetryAfter: inspectAgain}
	case found != nil:
		may, err := p.mayUse(ctx, req, name, found.Ref)
		switch {
		case err != nil:
			return Image{}, &Error{Reason: ErrPull, Message: err.Error(), RetryAfter: inspectAgain}
		case !may && req.Policy == corev1.PullNever:
			return Image{}, p.refuseUse(req)
		case !may:
			return p.pullImage(ctx, req, spec, found)
		}
		p.sendEvent(req, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", req.Image))
		return *found, nil
	case req.Policy == corev1.PullNever:
		message := fmt.Sprintf("Container image %q is not present with pull policy of Never", req.Image)
		p.sendEvent(req, corev1.EventTypeWarning, ErrNeverPull, message)
		return Image{}, &Error{Reason: ErrNeverPull, Message: message, RetryAfter: inspectAgain}
	}
	return p.pullImage(ctx, req, spec, nil)
}

// inspectImage returns the image if the runtime has it, and otherwise nil.
func (p *Puller) inspectImage(ctx context.Context, spec *runtimeapi.ImageSpec) (*Image, error) {
	answer, err := p.cfg.Images.ImageStatus(ctx, spec, false)
	if err != nil {
		return nil, err
	}
	status := answer.GetImage()
	if status.GetId() == "" {
		return nil, nil
	}
	image := &Image{Ref: status.Id, User: criconfig.User{Name: status.Username}}
	switch {
	case status.Uid != nil:
		image.User = criconfig.User{ID: &status.Uid.Value}
	case status.Username == "":
		image.User.ID = new(int64) // an image without a user runs as root
	}
	return image, nil
}

// pullImage pulls the image, unless the delay after a failure has not ended. A local image counts as pulled only if its pull was seen to finish.
func (p *Puller) pullImage(ctx context.Context, req Request, spec *runtimeapi.ImageSpec, before *Image) (Image, *Error) {
	key := keyOf(req.Pod.UID, req.Image)
	if now := time.Now(); p.delays.IsInBackOffSinceUpdate(key, now) {
		message := fmt.Sprintf("Back-off pulling image %q", req.Image)
		p.sendEvent(req, corev1.EventTypeNormal, "BackOff", message)
		if last := p.last.get(req.Pod.UID, req.Image); last.text != "" {
			return Image{}, &Error{Reason: BackOff, Message: message + ": " + last.text, RetryAfter: last.again.Sub(now)}
		}
		return Image{}, &Error{Reason: BackOff, Message: message, RetryAfter: p.delays.Get(key)}
	}
	begin := time.Now()
	p.sendEvent(req, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", req.Image))
	leave, err := p.pulling.enterGate(ctx, registryHost(spec.Image))
	if err != nil {
		return Image{}, &Error{Reason: ErrPull, Message: err.Error()}
	}
	defer leave()
	got := time.Now()
	end, err := p.pulls.beginPull(spec.Image)
	if err != nil {
		return Image{}, p.recordFailure(req, key, err)
	}
	how := unheard
	defer func() {
		// An image pulled without credentials is available to all pods.
		if how == unheard && (before != nil || len(req.Pod.Spec.ImagePullSecrets) == 0) {
			how = refused
		}
		end(how)
	}()
	ref, auth, err := p.fetchImage(ctx, req, spec)
	if err != nil && !lostAnswer(ctx, err) {
		how = refused
	}
	if ctx.Err() != nil {
		return Image{}, &Error{Reason: ErrPull, Message: ctx.Err().Error()} // no caller waits for the image, so no failure is recorded
	}
	if err != nil {
		return Image{}, p.recordFailure(req, key, err)
	}
	answer, err := p.cfg.Images.ImageStatus(ctx, spec, false)
	if id := answer.GetImage().GetId(); id != "" {
		if failed := p.rememberPull(spec.Image, id, auth); failed != nil {
			return Image{}, failed
		}
		how = recorded
	}
	return p.recordPull(req, ref, answer, err, begin, got)
}

// lostAnswer reports whether an error leaves the outcome of a pull unknown. One of several joined errors is enough.
func lostAnswer(ctx context.Context, err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return lostAnswer(ctx, err) })
	}
	code := status.Code(err)
	return ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded || code == codes.Unavailable
}

// recordPull records the pull, and gets the user of the image.
func (p *Puller) recordPull(req Request, ref string, answer *runtimeapi.ImageStatusResponse, err error, begin, got time.Time) (Image, *Error) {
	took, all := time.Since(got).Truncate(time.Millisecond), time.Since(begin).Truncate(time.Millisecond)
	p.sendEvent(req, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		req.Image, took, all, answer.GetImage().GetSize()))
	p.last.drop(req.Pod.UID, req.Image)
	p.delays.GC()
	image := Image{Ref: ref, User: criconfig.User{ID: new(int64)}}
	switch status := answer.GetImage(); {
	case err != nil:
		return Image{}, &Error{Reason: ErrInspect, Message: fmt.Sprintf("Failed to inspect image %q: %v", req.Image, err), RetryAfter: inspectAgain}
	case status.GetUid() != nil:
		image.User = criconfig.User{ID: &status.Uid.Value}
	case status.GetUsername() != "":
		image.User = criconfig.User{Name: status.Username}
	}
	return image, nil
}

// recordFailure records a failure, for the delay and for messages during the delay.
func (p *Puller) recordFailure(req Request, key string, err error) *Error {
	p.sendEvent(req, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", req.Image, err))
	now := time.Now()
	p.delays.Next(key, now)
	delay := p.delays.Get(key)
	reason, message := explainError(req.Image, err)
	p.last.put(req.Pod.UID, req.Image, failure{text: reason + ": " + message, again: now.Add(delay)})
	// After half of the delay, the status shows the reason of the delay.
	return &Error{Reason: reason, Message: message, RetryAfter: delay / 2}
}

// Forget drops the records of a pod.
func (p *Puller) Forget(uid types.UID) {
	for _, image := range p.last.dropAll(uid) {
		p.delays.DeleteEntry(keyOf(uid, image))
	}
}

// keyOf returns the key of a delay.
func keyOf(uid types.UID, image string) string { return string(uid) + "_" + image }

func (p *Puller) sendEvent(req Request, eventType, reason, message string) {
	p.cfg.Event(req.Pod, req.Container, eventType, reason, message)
}
