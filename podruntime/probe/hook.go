// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
)

// Reasons and messages of events about failed hooks. They omit the output of the hook, which may be secret.
const (
	FailedPostStartHook  = "FailedPostStartHook"
	FailedPreStopHook    = "FailedPreStopHook"
	PostStartHookMessage = "PostStartHook failed"
	PreStopHookMessage   = "PreStopHook failed"
)

// Hook runs a lifecycle hook of a container until it or ctx ends; the caller ends ctx when the container has ended. The text of the error can be the
// message of the reason PostStartHookError in the status of the container. An HTTP hook only fails without a response; any status code is a success.
func (p *Prober) Hook(ctx context.Context, t Target, hook *corev1.LifecycleHandler) error {
	switch {
	case hook.Exec != nil:
		stdout, stderr, err := p.cfg.Exec(ctx, t.ID, hook.Exec.Command, 0)
		if err != nil {
			return fmt.Errorf("Exec lifecycle hook (%v) for Container %q in Pod %q failed - error: %w, message: %q", //nolint:staticcheck // ST1005: the text is the kubelet's
				hook.Exec.Command, t.Container.Name, podName(t.Pod), err, joinOutputs(stdout, stderr))
		}
	case hook.HTTPGet != nil:
		if err := p.hookHTTP(ctx, t, hook.HTTPGet); err != nil {
			return fmt.Errorf("HTTP lifecycle hook (%s) for Container %q in Pod %q failed - error: %w",
				hook.HTTPGet.Path, t.Container.Name, podName(t.Pod), err)
		}
	case hook.Sleep != nil:
		if !sleep.For(ctx, time.Duration(hook.Sleep.Seconds)*time.Second) {
			err := errors.New("container terminated before sleep hook finished")
			return fmt.Errorf("Sleep lifecycle hook (%d) for Container %q in Pod %q failed - error: %w", //nolint:staticcheck // ST1005: the text is the kubelet's
				hook.Sleep.Seconds, t.Container.Name, podName(t.Pod), err)
		}
	default:
		return errors.New("Cannot run handler: invalid handler: it has no action") //nolint:staticcheck // ST1005: the text is the kubelet's
	}
	return nil
}

// PreStop runs the preStop hook of a container, if there is one, within the grace period, and returns its
// duration.
func (p *Prober) PreStop(ctx context.Context, t Target, grace time.Duration) (took time.Duration, err error) {
	if t.Container.Lifecycle == nil || t.Container.Lifecycle.PreStop == nil || grace <= 0 {
		return 0, nil
	}
	begin := time.Now()
	bounded, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err = p.Hook(bounded, t, t.Container.Lifecycle.PreStop)
	return min(time.Since(begin), grace), err
}

// hookHTTP runs an HTTP hook. If the server does not support TLS, hookHTTP retries without TLS and without the credentials, which are secret.
func (p *Prober) hookHTTP(ctx context.Context, t Target, action *corev1.HTTPGetAction) error {
	if action.Host == "" && len(t.PodIPs) == 0 {
		return errors.New("the pod has no address yet")
	}
	req, err := newRequest(ctx, action, t, "kube-lifecycle/"+version)
	if err != nil {
		return err
	}
	client := http.Client{Transport: p.http, CheckRedirect: sameHost}
	err = drainAnswer(client.Do(req))
	if !errors.Is(err, http.ErrSchemeMismatch) {
		return err
	}
	again := req.Clone(req.Context())
	again.URL.Scheme = "http"
	again.Header.Del("Authorization")
	if drainAnswer(client.Do(again)) != nil {
		return err
	}
	p.cfg.Event(t.Pod, t.Container.Name, corev1.EventTypeWarning, "LifecycleHTTPFallback",
		fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", req.URL.Host))
	return nil
}

// drainAnswer reads the response, so that the server can complete it.
func drainAnswer(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, readLimit)) // any answer is enough
	return nil
}
