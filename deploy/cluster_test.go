// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// patience is the time limit for every wait. It is generous, because the machine may be busy with other work.
const patience = 2 * time.Minute

// cluster is a namespace that enforces the restricted pod security standard.
type cluster struct {
	*testing.T
	*testapi.API
	namespace, node string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := testapi.Start(t)
	c := &cluster{T: t, API: api, namespace: api.Namespace(t), node: api.NodeName(t)}
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`)
	if _, err := api.Client.CoreV1().Namespaces().Patch(t.Context(), c.namespace, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	privileged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "privileged"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "main", Image: "none", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}}
	c.until("the labels of the namespace count", func(ctx context.Context) (bool, error) {
		_, err := api.Client.CoreV1().Pods(c.namespace).Create(ctx, privileged, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), nil
	})
	return c
}

// apply sends manifests, and returns the warnings of the API server.
func (c *cluster) apply(manifests string, args ...string) (warnings string) {
	c.Helper()
	file := filepath.Join(c.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		c.Fatal(err)
	}
	_, stderr, err := c.Kubectl(c, append([]string{"apply", "--server-side", "-f", file}, args...)...)
	if err != nil {
		c.Fatalf("apply: %v: %s", err, stderr)
	}
	return stderr
}

// install applies a release. The end of the test deletes the objects outside the namespace.
func (c *cluster) install(given values) {
	c.Helper()
	given = maps.Clone(given)
	given["nodeName"] = c.node
	manifests := mustRender(c.T, c.namespace, given)
	for _, args := range [][]string{{"--dry-run=server"}, nil} {
		if warnings := c.apply(manifests, args...); warnings != "" {
			c.Errorf("apply %v: the API server warns: %s", args, warnings)
		}
	}
	c.Cleanup(func() {
		for _, o := range objects(c.T, manifests) {
			ctx, all := context.Background(), metav1.DeleteOptions{}
			rbac := c.Client.RbacV1()
			switch o.GetKind() {
			case "ClusterRole":
				_ = rbac.ClusterRoles().Delete(ctx, o.GetName(), all)
			case "ClusterRoleBinding":
				_ = rbac.ClusterRoleBindings().Delete(ctx, o.GetName(), all)
			case "Role":
				_ = rbac.Roles(o.GetNamespace()).Delete(ctx, o.GetName(), all)
			case "RoleBinding":
				_ = rbac.RoleBindings(o.GetNamespace()).Delete(ctx, o.GetName(), all)
			}
		}
	})
}

// until waits until done returns true.
func (c *cluster) until(what string, done func(ctx context.Context) (bool, error)) {
	c.Helper()
	if err := wait.PollUntilContextTimeout(c.Context(), 100*time.Millisecond, patience, true, done); err != nil {
		events, _ := c.Client.CoreV1().Events(c.namespace).List(c.Context(), metav1.ListOptions{}) // for the reason
		for _, e := range events.Items {
			c.Logf("%s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
		c.Fatalf("wait until %s: %v", what, err)
	}
}

// TestSecurityG4RestrictedNamespaceAdmitsThePod installs the chart in a namespace that admits restricted pods
// only.
func TestSecurityG4RestrictedNamespaceAdmitsThePod(t *testing.T) {
	for name, given := range modes {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.install(given)
			c.until("there is a pod", func(ctx context.Context) (bool, error) {
				list, err := c.Client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=virtual-kubelet"})
				return err == nil && len(list.Items) == 1, err
			})
		})
	}
}

// TestLesserPodsAreWarnedOf shows that TestSecurityG4RestrictedNamespaceAdmitsThePod can fail.
func TestLesserPodsAreWarnedOf(t *testing.T) {
	c := newCluster(t)
	manifests := mustRender(t, c.namespace, modes[nodeIdentity])
	for _, line := range []string{"runAsNonRoot: true", "allowPrivilegeEscalation: false", "drop: [ALL]", "type: RuntimeDefault"} {
		lesser := strings.Replace(manifests, line, map[string]string{
			"runAsNonRoot: true": "runAsNonRoot: false", "allowPrivilegeEscalation: false": "allowPrivilegeEscalation: true",
			"drop: [ALL]": "drop: []", "type: RuntimeDefault": "type: Unconfined",
		}[line], 1)
		if lesser == manifests {
			t.Fatalf("the chart does not say %s", line)
		}
		if warnings := c.apply(lesser, "--dry-run=server"); !strings.Contains(warnings, "would violate PodSecurity") {
			t.Errorf("without %s: got %q, want a warning", line, warnings)
		}
	}
}

// TestTheServiceAccountIsEnough runs the doctor and the node with the rights and the settings that the chart
// gives them.
func TestTheServiceAccountIsEnough(t *testing.T) {
	c := newCluster(t)
	given := with(values{"serving": values{"mode": "selfSigned", "clientCAConfigMap": ""}, "provider": "empty"})
	c.install(given)
	kubeconfig := c.kubeconfigOf("virtual-kubelet")
	config := c.settings(given)
	args := []string{"--config=" + config, "--kubeconfig=" + kubeconfig, "--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0"}

	c.until("the doctor finds nothing", func(ctx context.Context) (bool, error) { // RBAC takes a moment
		var report bytes.Buffer
		err := execute(ctx, &report, append([]string{"doctor", "--timeout=" + patience.String()}, args...))
		if err != nil {
			t.Logf("doctor: %v\n%s", err, &report)
		}
		return err == nil, nil
	})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, &bytes.Buffer{}, args) }()
	c.until("the node is ready", func(ctx context.Context) (bool, error) {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	// helm test runs the doctor from a pod of its own, while the node runs.
	var report bytes.Buffer
	if err := execute(t.Context(), &report, append([]string{"doctor", "--timeout=" + patience.String()}, args...)); err != nil {
		t.Errorf("the doctor finds fault with a node that runs: %v\n%s", err, &report)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// empty is a provider without pods.
type empty struct{ nodeutil.Provider }

func (empty) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }
func (empty) NotifyPods(context.Context, func(*corev1.Pod))  {}

func execute(ctx context.Context, out *bytes.Buffer, args []string) error {
	cmd := cli.Program{Name: "vk", Providers: []cli.Provider{{Name: "empty", New: func(context.Context, cli.ProviderInput) (nodeutil.Provider, error) {
		return empty{}, nil
	}}}}.Command()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(out)
	return cmd.ExecuteContext(ctx)
}

// settings writes the configuration file of a release.
func (c *cluster) settings(given values) string {
	c.Helper()
	given = maps.Clone(given)
	given["nodeName"] = c.node
	text, _, err := unstructured.NestedString(find(c.T, objects(c.T, mustRender(c.T, c.namespace, given)), "ConfigMap").Object, "data", "config.yaml")
	if err != nil {
		c.Fatal(err)
	}
	file := filepath.Join(c.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	return file
}

// kubeconfigOf writes a kubeconfig for a service account.
func (c *cluster) kubeconfigOf(name string) string {
	c.Helper()
	token, err := c.Client.CoreV1().ServiceAccounts(c.namespace).CreateToken(c.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(c.KubeconfigPath)
	if err != nil {
		c.Fatal(err)
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	path := filepath.Join(c.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.Fatal(err)
	}
	return path
}
