// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// policy has the actions of the README's policy.
var policy = []string{
	"eci:CreateContainerGroup", "eci:DeleteContainerGroup", "eci:RestartContainerGroup", "eci:DescribeContainerGroups", "eci:DescribeContainerGroupStatus",
	"eci:DescribeContainerLog", "eci:ExecContainerCommand", "eci:DescribeMultiContainerGroupMetric",
}

func withoutAction(action string) []string {
	return slices.DeleteFunc(slices.Clone(policy), func(a string) bool { return a == action })
}

// TestDoctor checks that the command doctor names a remedy for each mistake.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		seed  func(h *home)
		wants []string // none: there are no problems
	}{
		{"no mistake", func(*home) {}, nil},
		{"another region", func(h *home) { h.config.Region = "cn-beijing" }, []string{"InvalidRegionId", "look at region"}},
		{"a region that is none", func(h *home) {
			h.config.Region, h.config.Endpoint = "cn-nowhere", ""
			h.next.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "eci.cn-nowhere.aliyuncs.com", IsNotFound: true}}
			}
		}, []string{"eci.cn-nowhere.aliyuncs.com", `look at region "cn-nowhere" and endpoint`}},
		{"nobody listens", func(h *home) {
			h.next.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:1")
			}
		}, []string{"connection refused", "check endpoint"}},
		{"an authority that is not known", func(h *home) { h.next = http.DefaultTransport.(*http.Transport).Clone() }, []string{"check caFile"}},
		{"a key that is none", func(h *home) { h.config.AccessKeyID = config.Literal("LTAI-other") }, []string{"InvalidAccessKeyId", "look at accessKeyID"}},
		{"a wrong secret", func(h *home) { h.config.AccessKeySecret = config.Literal("other") }, []string{"SignatureDoesNotMatch", "look at accessKeyID and accessKeySecret"}},
		{"a key that has ended", func(h *home) {
			h.region.Keys["STS.old"] = eci.Key{Secret: "s", Token: "t", Ends: time.Now().Add(-time.Minute)}
			h.config.AccessKeyID, h.config.AccessKeySecret, h.config.SecurityToken = config.Literal("STS.old"), config.Literal("s"), config.Literal("t")
		}, []string{"InvalidSecurityToken.Expired", "the token of a temporary key has ended"}},
		{"a wrong clock", func(h *home) { h.config.now = func() time.Time { return time.Now().Add(20 * time.Minute) } }, []string{"clock of this machine is 20m"}},
		{"no right to create", func(h *home) { h.region.Permit(accessKey, withoutAction("eci:CreateContainerGroup")) }, []string{"the right eci:CreateContainerGroup"}},
		{"no right to delete", func(h *home) { h.region.Permit(accessKey, withoutAction("eci:DeleteContainerGroup")) }, []string{"the right eci:DeleteContainerGroup"}},
		{"no right to logs and exec", func(h *home) { h.region.Permit(accessKey, policy[:5]) }, []string{"the right eci:DescribeContainerLog", "the right eci:ExecContainerCommand"}},
		{"a switch that is none", func(h *home) { h.config.VSwitchIDs = []string{"vsw-1", "vsw-2"} }, []string{"vsw-2", "check vSwitchIDs"}},
		{"a security group that is none", func(h *home) { h.config.SecurityGroupID = "sg-2" }, []string{"sg-2", "check securityGroupID"}},
		{"a quota that is used up", func(h *home) {
			h.region.Quota = 1
			p, stop := h.start()
			pod := h.Pod("default", "one", stays())
			h.Create(p, pod)
			h.UntilRuns(p, pod)
			stop()
		}, []string{"QuotaExceeded", "ask for more in the console, or lower the capacity"}},
		{"a token of a service account that is not there", func(h *home) {
			h.config.AccessKeyID, h.config.AccessKeySecret = config.Secret{}, config.Secret{}
			h.config.OIDC = OIDC{RoleARN: "acs:ram::1:role/vk", ProviderARN: "acs:ram::1:oidc-provider/k8s", TokenFile: filepath.Join(h.TempDir(), "token")}
		}, []string{"take the role acs:ram::1:role/vk by OIDC", "token: no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			c.seed(h)
			p := h.open()
			made := len(h.region.front.Requests("CreateContainerGroup"))
			err := p.Examine(t.Context())
			if len(c.wants) == 0 && err != nil {
				t.Errorf("nothing is wrong, and it says: %v", err)
			}
			for _, want := range c.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it says: %v; want %q", err, want)
				}
			}
			for _, r := range h.region.front.Requests("CreateContainerGroup")[made:] {
				if !strings.Contains(string(r.Body), "DryRun=true") {
					t.Errorf("it has created a group: %s", r.Body)
				}
			}
		})
	}
}

// TestDryRunThatIsDone checks that the group of a region that ignores the dry run is deleted.
func TestDryRunThatIsDone(t *testing.T) {
	var deleted string
	r := &region{t: t, says: map[string]func(f url.Values) any{
		"CreateContainerGroup": func(url.Values) any { return object{"ContainerGroupId": "eci-oops"} },
		"DeleteContainerGroup": func(f url.Values) any { deleted = f.Get("ContainerGroupId"); return object{} },
	}}
	p := &driver{client: r.client()}
	if err := p.dryRun(t.Context()); err != nil || deleted != "eci-oops" {
		t.Errorf("got %v, and %q was deleted", err, deleted)
	}
}

// TestLeastRights checks that the policy of the README is enough for the life of a pod, and that each of its
// actions is needed.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range policy {
		if n := strings.Count(string(readme), `"`+action+`"`); n != 1 {
			t.Errorf("the policy of the README has %s %d times", action, n)
		}
	}
	if n := strings.Count(string(readme), `"eci:`); n != len(policy) {
		t.Errorf("the policy of the README has %d actions, want %d", n, len(policy))
	}
	h := newHome(t)
	h.region.Permit(accessKey, policy)
	p, stop := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	if log := h.Log(p, pod); log != "begun\n" {
		t.Errorf("the log is %q", log)
	}
	words := append([]string{"program"}, program.Program{Print: []string{"printed"}}.Args()...)
	who := &caller{}
	if err := p.RunInContainer(t.Context(), "default", "web", "main", words, who); err != nil || who.out.String() != "printed\n" {
		t.Errorf("exec: %v, %q", err, who.out.String())
	}
	if s, err := p.GetStatsSummary(t.Context()); err != nil || len(s.Pods) != 1 || s.Pods[0].CPU == nil {
		t.Errorf("stats: %+v, %v", s, err)
	}
	h.region.Permit(accessKey, withoutAction("eci:DescribeMultiContainerGroupMetric"))
	if _, err := p.GetStatsSummary(t.Context()); err == nil || !strings.Contains(err.Error(), "give the user or role the right eci:DescribeMultiContainerGroupMetric") {
		t.Errorf("stats without the right: %v", err)
	}
	h.region.Permit(accessKey, policy)
	t.Run("without the right to list states", func(t *testing.T) {
		h.region.Permit(accessKey, withoutAction("eci:DescribeContainerGroupStatus"))
		h.Until("the node says so", func() (bool, string) {
			err := p.Ping(h.Context())
			return err != nil && strings.Contains(err.Error(), "look at the right eci:DescribeContainerGroupStatus"), errorText(err)
		})
		if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || p.AnswersForAllPods() {
			t.Errorf("the pod is lost with the right: %v, %v", got, err)
		}
		h.region.Permit(accessKey, policy)
		h.Until("the node is well", func() (bool, string) { err := p.Ping(h.Context()); return err == nil, errorText(err) })
	})
	stop()
	t.Run("without the right to list groups", func(t *testing.T) {
		h.region.Permit(accessKey, withoutAction("eci:DescribeContainerGroups"))
		p, stop := h.start() // the provider must ask for the owner of the group
		defer stop()
		h.Until("the node says so", func() (bool, string) {
			err := p.Ping(h.Context())
			return err != nil && strings.Contains(err.Error(), "look at the right eci:DescribeContainerGroups"), errorText(err)
		})
		h.region.Permit(accessKey, policy)
		h.UntilRuns(p, pod)
		h.Delete(p, pod)
		h.UntilGone(p, pod)
	})
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
