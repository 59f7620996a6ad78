// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestTheReadmeHasTheRightsThatAreAskedFor compares the role in the README with the rights that doctor checks.
func TestTheReadmeHasTheRightsThatAreAskedFor(t *testing.T) {
	var readme, asked []string
	for _, rule := range remotetest.ReadmeRules(t, "README.md", "virtual-kubelet-tensilekube") {
		if rule.APIGroups[0] == "metrics.k8s.io" { // without it, only statistics are missing
			continue
		}
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				readme = append(readme, fmt.Sprint(verb, " ", rule.APIGroups[0], "/", resource, rule.ResourceNames))
			}
		}
	}
	all := remotecluster.Config{StorageClasses: map[string]string{"a": "b"}, Global: remotecluster.MarkedGlobal}
	for _, right := range all.Rights() {
		names := []string{}
		if right.Name != "" {
			names = append(names, right.Name)
		}
		for _, resource := range right.Resources {
			for _, verb := range right.Verbs {
				asked = append(asked, fmt.Sprint(verb, " ", right.Group, "/", resource, names))
			}
		}
	}
	slices.Sort(readme)
	slices.Sort(asked)
	if diff := cmp.Diff(readme, asked); diff != "" {
		t.Errorf("the role of the README and what is asked for differ (-README +asked): %s", diff)
	}
}

// TestExamineNamesWhatIsMissing takes rights away, and examines them as doctor does, without a running node.
func TestExamineNamesWhatIsMissing(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "examined", "vk-0")
	u.config.Capacity, u.config.StorageClasses = nil, map[string]string{"a": "b"}
	u.asTheReadmeSays()
	u.Identify("another")
	p := u.make()
	u.Until("all rights are seen", func() (bool, string) { err := p.Examine(t.Context()); return err == nil, fmt.Sprint(err) })
	roles := w.API.Client.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), u.user, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, take := range []struct{ verb, resource string }{{"delete", "secrets"}, {"create", "pods/exec"}, {"create", "persistentvolumeclaims"}, {"get", "services"}} {
		less := role.DeepCopy()
		less.ResourceVersion = ""
		for i := range less.Rules {
			if rule := &less.Rules[i]; slices.Contains(rule.Resources, take.resource) {
				rest := *rule.DeepCopy()
				rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return r == take.resource })
				rest.Resources, rest.Verbs = []string{take.resource}, slices.DeleteFunc(rest.Verbs, func(v string) bool { return v == take.verb })
				less.Rules = append(less.Rules, rest)
			}
		}
		less.Rules = slices.DeleteFunc(less.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources)*len(r.Verbs) == 0 })
		if _, err := roles.Update(t.Context(), less, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		u.Until("doctor names "+take.verb+" "+take.resource, func() (bool, string) {
			err := p.Examine(t.Context())
			return err != nil && strings.Contains(err.Error(), "may not "+take.verb+" "+take.resource+":"), fmt.Sprint(err)
		})
	}
	if writes := slices.DeleteFunc(u.line.Writes(), func(r string) bool { return strings.HasSuffix(r, "/selfsubjectaccessreviews") }); len(writes) > 0 {
		t.Errorf("it wrote %q", writes)
	}
}

// TestDoctorRefusesHome runs the command doctor with the kubeconfig of the upper cluster in place of the lower
// one's.
func TestDoctorRefusesHome(t *testing.T) {
	api := testapi.Start(t)
	file := filepath.Join(t.TempDir(), "provider.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: "+APIVersion+"\nkind: "+Kind+"\nclusterName: a\nkubeconfig: "+api.KubeconfigPath+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := cli.Program{Name: "vk", Version: "v9", Providers: []cli.Provider{Provider()}}.Command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"doctor", "--kubeconfig", api.KubeconfigPath, "--provider-config", file, "--disable-kubelet-api", "--nodename", api.NodeName(t)})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(out.String(), "the remote cluster is the home cluster") {
		t.Errorf("doctor ended with %v and said %s", err, &out)
	}
}
