// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestTaskThatStopsIsKnownAfterARestart checks a stopping task, whose tags StopTask has deleted. The next
// process knows the pod until the task has stopped, and then removes the pod's secret, also if the pod has left
// the cluster meanwhile.
func TestTaskThatStopsIsKnownAfterARestart(t *testing.T) {
	for name, inCluster := range map[string]bool{"a pod that the cluster has": true, "a pod that has left the cluster": false} {
		t.Run(name, func(t *testing.T) {
			c := cloudOf(t)
			conf, err := c.config("home")
			if err != nil {
				t.Fatal(err)
			}
			conf.Queue = "" // a queue would report the task to the second process
			pods := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
			start := func() (p *driver, stop func()) {
				p, err := newDriver(t.Context(), cli.ProviderInput{NodeName: "node", ProviderConfig: nodeutil.ProviderConfig{Pods: corev1listers.NewPodLister(pods)}}, conf, listing)
				if err != nil {
					t.Fatal(err)
				}
				p.kit.UsePodObjects(values{})
				p.kit.UsePodTokens(values{})
				ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
				done := make(chan error, 1)
				go func() { done <- p.kit.RunInBackground(ctx) }()
				return p, func() {
					cancel()
					if err := <-done; err != nil {
						t.Errorf("the work in the background: %v", err)
					}
				}
			}
			before, stop := start()
			pod := podOf("slow", program.Program{Stay: program.Forever, Deaf: true})
			pod.Spec.TerminationGracePeriodSeconds = aws.Int64(5)
			pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
			if err := before.kit.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			until(t, before, "slow", "running", isRunning)
			own := ownName(before.mapping.owner, pod.UID)
			if !slices.Contains(c.Secrets(), own) {
				t.Fatalf("the secret of the pod is not there: %v", c.Secrets())
			}
			pod.DeletionTimestamp = new(metav1.Now())
			if err := before.kit.DeletePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			stop()
			if inCluster {
				if err := pods.Add(pod); err != nil {
					t.Fatal(err)
				}
			}
			after, stop := start()
			defer stop()
			if err := after.kit.Cache().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, _, known := after.kit.Cache().Get(pod.UID)
			if runs := len(c.Running(identity.TagUID, string(pod.UID))) > 0; runs && known != inCluster {
				t.Errorf("the task runs, and its pod is known: %t, want %t", known, inCluster)
			} else if !runs {
				t.Fatal("the task has stopped before anybody asked")
			}
			tick := everyMoment(t)
			for slices.Contains(c.Secrets(), own) {
				tick("the secret of the pod is removed")
			}
		})
	}
}

// listing is a configuration in which each round is a list.
var listing = func() (at service.Config) { at = quick; at.ListEvery = time.Millisecond; return at }()

// TestTaskWithoutTagsIsKnownByItsARN checks tasks of an earlier version, which have no group with the UID of the pod, and no tags
// while they stop. Such a task is known as long as its pod is, and its secret is removed with the task. Tasks of others are never
// adopted.
func TestTaskWithoutTagsIsKnownByItsARN(t *testing.T) {
	p, _ := hearing(t)
	pod := podOf("a", program.Program{})
	task := ecstypes.Task{
		TaskArn: aws.String("arn:1"), LastStatus: aws.String("DEACTIVATING"), DesiredStatus: aws.String(stateStopped), StartedBy: aws.String(p.mapping.startedBy()),
		Group: aws.String("family:vk-x"), Tags: p.mapping.tags(identity.Of(pod), true),
	}
	p.kit.Cache().Accepted(pod, task)
	task.Tags = nil
	for how, ask := range map[string]func() ([]ecstypes.Task, error){
		"a round": func() ([]ecstypes.Task, error) { return p.Changed(t.Context(), time.Now()) },
		"a list":  func() ([]ecstypes.Task, error) { return p.List(t.Context()) },
	} {
		p.client.http.Transport = oneTask(task)
		told, err := ask()
		if err != nil || len(told) != 1 {
			t.Fatalf("%s: %d tasks, %v", how, len(told), err)
		}
		if id, ours := p.Identify(told[0]); !ours || id.UID != pod.UID || tagsOf(told[0])[tagOwn] == "" {
			t.Errorf("%s: the task is that of %+v, %t", how, id, ours)
		}
	}
	task.TaskArn, task.StartedBy, task.Group = aws.String("arn:2"), aws.String("vk-other"), aws.String(group(pod.UID, true))
	p.client.http.Transport = oneTask(task)
	told, _, err := p.describe(t.Context(), []string{"arn:2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ours := p.Identify(told[0]); ours {
		t.Error("a task that another node has started is taken")
	}
}
