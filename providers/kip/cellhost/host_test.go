// SPDX-License-Identifier: Apache-2.0

package cellhost

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

var _ emulated.Host = (*Host)(nil)

// TestInstancesHaveAgents: two instances have agents at two addresses. Each agent proves that it is of its instance, takes a pod, and reports its status. An
// instance whose agent has ended is gone.
func TestInstancesHaveAgents(t *testing.T) {
	ran := make(chan string, 2)
	host := New(t.TempDir(), func(ctx context.Context, id string, job podjob.Config) error {
		b, err := job.Host.Bundle(ctx)
		if err != nil {
			return err
		}
		ran <- id + " " + b.Pod.Name
		if err := job.Host.WriteStatus(ctx, podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning}}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	t.Cleanup(host.Close)
	server := httptest.NewServer(emulated.New(host))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	driver, err := ec2.New(t.Context(), ec2.Config{Region: "us-east-1", Endpoint: server.URL, SubnetID: "subnet-1"}, cell.Port)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cell.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{}
	for _, name := range []string{"one", "two"} {
		m, err := driver.Start(t.Context(), machine.Spec{Token: name, Image: "ami-1", Type: machine.Type{Name: "t3.nano"}, UserData: authority.UserData(name, "", time.Hour, 0).Marshal()})
		if err != nil {
			t.Fatal(err)
		}
		ip, _, err := net.SplitHostPort(m.Address)
		if err != nil || addresses[ip] {
			t.Errorf("instance %s has the address %q, %v", m.ID, m.Address, err)
		}
		addresses[ip] = true
		client := authority.Client(name, m.Address)
		t.Cleanup(client.Close)
		if err := client.Join(t.Context(), "", func(context.Context, string) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := client.Give(t.Context(), podjob.Bundle{Node: &corev1.Node{}, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}}); err != nil {
			t.Fatal(err)
		}
		if got, want := <-ran, m.ID+" "+name; got != want {
			t.Errorf("an agent runs %q, want %q", got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = client.Watch(ctx, func(s cell.State) {
			if s.Status != nil && s.Status.Pod.Phase == corev1.PodRunning {
				cancel()
			}
		})
		if err != nil || ctx.Err() == nil {
			t.Errorf("the status of %s was not seen: %v", m.ID, err)
		}
		cancel()
		if now, is, err := driver.Describe(t.Context(), m.ID); err != nil || !is || now.State != machine.Running {
			t.Errorf("instance %s is %+v, %t, %v", m.ID, now, is, err)
		}
		if err := driver.Stop(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
		<-host.find(m.ID).ended
		if now, _, err := driver.Describe(t.Context(), m.ID); err != nil || now.State != machine.Gone {
			t.Errorf("the stopped instance %s is %+v, %v", m.ID, now, err)
		}
	}
}

// TestInstanceWithoutUserDataStartsNoAgent: user data that are not from a node make the start of the instance fail.
func TestInstanceWithoutUserDataStartsNoAgent(t *testing.T) {
	host := New(t.TempDir(), nil)
	server := httptest.NewServer(emulated.New(host))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	driver, err := ec2.New(t.Context(), ec2.Config{Region: "us-east-1", Endpoint: server.URL, SubnetID: "subnet-1"}, cell.Port)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := driver.Start(t.Context(), machine.Spec{Token: "one", Type: machine.Type{Name: "t3.nano"}, UserData: []byte("{}")}); err == nil {
		t.Errorf("it started %+v", m)
	}
	if host.IsRunning("i-00000000000000001") {
		t.Error("an agent runs")
	}
}
