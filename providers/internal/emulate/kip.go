// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/cellhost"
)

func init() { services["kip"] = kipService }

// kipService returns Amazon EC2 for provider kip, with a new key. Each instance has the real agent without a machine, and the runner runs its pod.
func kipService(ctx context.Context, b behind) service {
	pods := &cells{jobs: newJobs(b.runner)}
	host := cellhost.New(filepath.Join(b.dir, "cells"), pods.runPod)
	context.AfterFunc(ctx, host.Close)
	s := ec2.New(host)
	s.Forget()
	return service{
		Handler: s, report: pods.takeReport, plain: true, operation: ec2Operation, made: kipMade, wait: host.Close,
		left:      func() map[string][]string { return map[string][]string{"instances": s.Running()} },
		variables: []string{"AWS_ACCESS_KEY_ID=AKIA" + rand.Text(), "AWS_SECRET_ACCESS_KEY=" + rand.Text(), "AWS_SESSION_TOKEN=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"},
		settings: func(url, _ string) string {
			return fmt.Sprintf(`apiVersion: kip.virtual-kubelet.io/v1alpha1
kind: KipProviderConfiguration
clusterName: demo
directory: %s
image: ami-0123456789abcdef0
ec2: {region: eu-central-1, endpoint: %q, subnetID: subnet-emulated}
maxMachines: 1000
startsPerMinute: 120
capacity: %s
`, filepath.Join(b.dir, "node"), url, b.capacity)
		},
		// "Request throttling for the Amazon EC2 API", read 2026-11-29: each operation has a bucket of its own.
		rates: []emulator.Rate{
			{Operations: []string{"RunInstances"}, Burst: 5, PerSecond: 2},
			{Operations: []string{"TerminateInstances"}, Burst: 100, PerSecond: 5},
			{Operations: []string{"CreateTags"}, Burst: 100, PerSecond: 10},
			{Operations: []string{"DescribeInstances"}, Burst: 100, PerSecond: 20},
		},
		throttled: ec2.Refuse(http.StatusServiceUnavailable, "RequestLimitExceeded"),
	}
}

// ec2Operation returns the operation of a request. The body stays unread.
func ec2Operation(r *http.Request) string {
	if r.PostForm != nil {
		return r.PostForm.Get("Action")
	}
	body, _ := io.ReadAll(r.Body) // a request in parts has no operation
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	return form.Get("Action")
}

// kipMade returns the instance in an answer, and the name of its pod.
func kipMade(_ *http.Request, body, answer []byte) (id, pod string) {
	form, _ := url.ParseQuery(string(body)) // the service has refused an invalid form
	if form.Get("Action") != "RunInstances" {
		return "", ""
	}
	for n := 1; form.Has(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", n)); n++ {
		if form.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", n)) == identity.TagName {
			pod = form.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Value", n))
		}
	}
	var out struct {
		IDs []string `xml:"instancesSet>item>instanceId"`
	}
	if xml.Unmarshal(answer, &out) != nil || len(out.IDs) != 1 {
		return "", ""
	}
	return out.IDs[0], pod
}

// cells runs the pods of instances at a runner, for their agents.
type cells struct{ *jobs }

// runPod runs the pod of an instance. It implements cellhost.RunPod.
func (c *cells) runPod(ctx context.Context, instance string, job podjob.Config) error {
	if err := job.Host.Claim(ctx); err != nil {
		return err
	}
	b, err := job.Host.Bundle(ctx)
	if err != nil {
		return err
	}
	pod := b.Pod.DeepCopy()
	pod.Namespace, pod.Name = "cells", instance
	reports, endPod, err := c.startPod(ctx, pod)
	if err != nil {
		return err
	}
	defer endPod()
	stopped := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-job.Wake:
			order, err := job.Host.StopOrder(ctx)
			if err != nil {
				return err
			}
			if order != nil {
				stopped = true
				c.stopPod(pod)
			}
		case now := <-reports:
			status := podjob.Status{Pod: now.Status, Job: instance, Host: instance, Ended: hasEnded(now), Stopped: stopped}
			if err := job.Host.WriteStatus(ctx, status); err != nil || status.Ended {
				return err
			}
		}
	}
}
