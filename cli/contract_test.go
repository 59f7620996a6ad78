// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// account is a service that runs containers as goroutines; the fields let a test influence it.
type account struct {
	cloud   *inprocess.Cloud
	created func(*corev1.Pod) // called after a pod was created
	begin   func(*corev1.Pod) // called before a pod is created
	refuse  error             // the error of DeletePod

	mu   sync.Mutex
	made int // guarded by mu
}

func newAccount(t *testing.T) *account {
	return &account{cloud: inprocess.New(t.Context()), created: func(*corev1.Pod) {}, begin: func(*corev1.Pod) {}}
}

// customer is a provider that uses an account.
type customer struct {
	*inprocess.Provider
	*account
}

func (c customer) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	c.begin(pod)
	err := c.Provider.CreatePod(ctx, pod)
	c.mu.Lock()
	c.made++
	c.mu.Unlock()
	c.created(pod)
	return err
}

func (c customer) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if c.refuse != nil {
		return c.refuse
	}
	return c.Provider.DeletePod(ctx, pod)
}

// contractProgramOf returns a program with a provider for the account.
func contractProgramOf(a *account) Program {
	return Program{Name: "vk", Version: "v9", Providers: []Provider{
		{Name: "cloud", New: func(_ context.Context, in ProviderInput) (nodeutil.Provider, error) {
			if in.NodeName != "contract" || in.Node.Labels[corev1.LabelOSStable] != "linux" {
				return nil, errors.New("the provider is made for another node than the contract's")
			}
			return customer{inprocess.Open(a.cloud, inprocess.Objects{ConfigMaps: in.ConfigMaps, Secrets: in.Secrets}), a}, nil
		}, Capabilities: func(path string) (capability.Declaration, error) {
			if path != "" {
				return capability.Declaration{}, errors.New(path + ":1: unknown field")
			}
			return (&inprocess.Provider{}).Capabilities(), nil
		}},
		{Name: "closed", New: func(context.Context, ProviderInput) (nodeutil.Provider, error) {
			return nil, errors.New("401 Unauthorized: set CLOUD_TOKEN")
		}},
	}}
}

// ran is the result of the command contract.
type ran struct {
	code     int
	out, err string
}

func runContract(ctx context.Context, t *testing.T, a *account, in io.Reader, args ...string) ran {
	t.Helper()
	defer func(l log.Logger) { log.L = l }(log.L)
	var out, stderr bytes.Buffer
	cmd := contractProgramOf(a).Command()
	cmd.SetArgs(append([]string{"contract", "--program=/program"}, args...))
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	err := cmd.ExecuteContext(ctx)
	r := ran{out: out.String(), err: stderr.String()}
	if code := (exitError{}); errors.As(err, &code) {
		r.code = code.code
		r.err += code.Error()
	} else if err != nil {
		t.Fatalf("an error without an exit code: %v", err)
	}
	return r
}

// runs returns the pods that the account pays for.
func (a *account) runs(t *testing.T) (names []string) {
	t.Helper()
	pods, err := inprocess.Open(a.cloud, inprocess.Objects{}).GetPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

// TestContractOfAnAccount runs the whole contract as a user does.
func TestContractOfAnAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		got := runContract(t.Context(), t, a, nil, "--provider=cloud", "--yes", "--result", path, "--backend=region north")
		if got.code != 0 {
			t.Errorf("it ends with %d: %s\n%s", got.code, got.err, got.out)
		}
		if left := a.runs(t); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
		if begin, _, _ := strings.Cut(got.out, "\npassed"); !strings.Contains(begin, "pods with") || !strings.Contains(begin, "at most 5 pods at once") ||
			!strings.Contains(begin, "It takes about") {
			t.Errorf("it begins with %q, want what it makes, how many at once, and how long it takes", begin)
		}
		f, err := providertest.ReadResultFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Provider != "cloud" || f.Version != "v9" || f.Backend != "region north" || f.Image != defaultContractImage || f.Partial || f.Date.IsZero() {
			t.Errorf("the results are about %+v of %s, partial %t", f.Subject, f.Date, f.Partial)
		}
		if len(f.Checks) != len(providertest.Checks()) {
			t.Errorf("the results have %d checks, want %d", len(f.Checks), len(providertest.Checks()))
		}
		declared := (&inprocess.Provider{}).Capabilities()
		for _, feature := range f.Features {
			if !declared.Has(feature.Feature) || feature.Outcome != providertest.Passed {
				t.Errorf("feature %s %s: %s", feature.Feature, feature.Outcome, feature.Detail)
			}
		}
		if len(f.Features) < 10 {
			t.Errorf("the results have the features %v, want all that are declared", f.Features)
		}
	})
}

// TestContractAsksFirst holds that no pod is created before the user has agreed.
func TestContractAsksFirst(t *testing.T) {
	for answer, made := range map[string]bool{"yes\n": true, "YES": true, "y\n": false, "\n": false, "": false} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t)
			got := runContract(t.Context(), t, a, strings.NewReader(answer), "--provider=cloud", "--run=^creation/runs$")
			if (a.made > 0) != made || (got.code == 0) != made {
				t.Errorf("after the answer %q it made %d pods and ended with %d %s", answer, a.made, got.code, got.err)
			}
			if !made && (got.code != 2 || !strings.Contains(got.err, "nothing was made")) {
				t.Errorf("after the answer %q it ends with %d %q, want 2 and that nothing was made", answer, got.code, got.err)
			}
			if !strings.Contains(got.out, "1 checks at most") || !strings.Contains(got.out, "1 pods with 1 containers") {
				t.Errorf("it asks with %q", got.out)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		in, _ := io.Pipe()
		if got := runContract(ctx, t, newAccount(t), in, "--provider=cloud"); got.code != 2 {
			t.Errorf("it ends with %d %q", got.code, got.err)
		}
	})
}

// TestContractInterrupted interrupts a run with Ctrl-C.
func TestContractInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.json")
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		ctx, interrupt := context.WithCancel(t.Context())
		a.created = func(*corev1.Pod) {
			if len(a.runs(t)) == 3 { // during a check of many pods
				interrupt()
			}
		}
		got := runContract(ctx, t, a, nil, "--provider=cloud", "--yes", "--result", path, "--backend=b")
		if left := a.runs(t); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
		if got.code != 2 || !strings.Contains(got.err, "everything that was made is removed") || !strings.Contains(got.err, "Ctrl-C once more") {
			t.Errorf("it ends with %d %q", got.code, got.err)
		}
		if f, err := providertest.ReadResultFile(path); err != nil || !f.Partial || len(f.Features) > 0 {
			t.Errorf("the results: %v, partial %t, features %v; want them to be partial", err, f.Partial, f.Features)
		}
	})
}

// TestContractThatCannotRemove holds that the command names the pods that the user must remove, and that the next run begins with these
// pods.
func TestContractThatCannotRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.refuse = errors.New("403 Forbidden")
		args := []string{"--provider=cloud", "--yes", "--run=^creation/runs$", "--patience=30s"}
		got := runContract(t.Context(), t, a, nil, args...)
		const pod = "contract-creation-runs/runs"
		if got.code != 1 || !strings.Contains(got.err, pod) || !strings.Contains(got.err, "403 Forbidden") || !strings.Contains(got.err, "--cleanup") {
			t.Errorf("it ends with %d %q, want 1, the pod, why, and what to do", got.code, got.err)
		}
		made := a.made
		if got := runContract(t.Context(), t, a, nil, args...); got.code != 2 || !strings.Contains(got.err, pod) || a.made != made {
			t.Errorf("the next run ends with %d %q and made %d pods, want none beside what is left", got.code, got.err, a.made-made)
		}
		if got := runContract(t.Context(), t, a, nil, append(args, "--cleanup")...); got.code != 1 || !strings.Contains(got.err, "not removed within 30s: "+pod) {
			t.Errorf("--cleanup that is refused ends with %d %q", got.code, got.err)
		}
		a.refuse = nil
		if got := runContract(t.Context(), t, a, strings.NewReader("no\n"), "--provider=cloud", "--cleanup"); got.code != 2 || len(a.runs(t)) != 1 {
			t.Errorf("--cleanup that is not confirmed ends with %d %q and leaves %v", got.code, got.err, a.runs(t))
		}
		if got := runContract(t.Context(), t, a, nil, append(args, "--cleanup")...); got.code != 0 || len(a.runs(t)) != 0 {
			t.Errorf("--cleanup ends with %d %q and leaves %v", got.code, got.err, a.runs(t))
		}
		if got := runContract(t.Context(), t, a, nil, append(args, "--cleanup")...); got.code != 0 || !strings.Contains(got.out, "has no pods") {
			t.Errorf("--cleanup of nothing ends with %d %q %q", got.code, got.out, got.err)
		}
	})
}

// TestContractCleansUpWhatHasEnded holds that ended pods are removed too, because the backend may charge for them.
func TestContractCleansUpWhatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		backend := inprocess.Open(a.cloud, inprocess.Objects{})
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID = "contract-exits-code", "ended", "u1"
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers = []corev1.Container{{Name: "main", Args: []string{`{}`}}}
		if err := backend.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if left := a.runs(t); len(left) > 0 {
			t.Fatalf("%v has not ended", left)
		}
		got := runContract(t.Context(), t, a, nil, "--provider=cloud", "--yes", "--cleanup")
		pods, err := backend.GetPods(t.Context())
		if got.code != 0 || err != nil || len(pods) != 0 {
			t.Errorf("--cleanup ends with %d %q %q and leaves %d pods, %v", got.code, got.out, got.err, len(pods), err)
		}
	})
}

// TestContractThatCannotKeep holds that leftover pods are still reported if the results cannot be written.
func TestContractThatCannotKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.json")
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.refuse = errors.New("403 Forbidden")
		a.created = func(*corev1.Pod) {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Error(err)
			}
		}
		got := runContract(t.Context(), t, a, nil, "--provider=cloud", "--yes", "--run=^creation/runs$", "--patience=10s", "--result", path, "--backend=b")
		if got.code != 1 || !strings.Contains(got.err, "1 pods may still be") || !strings.Contains(got.err, "write the results to "+path) {
			t.Errorf("it ends with %d %q, want 1, what is left, and that nothing is written", got.code, got.err)
		}
	})
}

// TestContractThatCannotLook holds that the command does not report complete removal if the last list fails, but still reports the results
// of the checks.
func TestContractThatCannotLook(t *testing.T) {
	for name, interrupted := range map[string]bool{"at the end": false, "after Ctrl-C": true} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			a.created = func(*corev1.Pod) {
				if interrupted {
					interrupt()
				}
				a.cloud.Fail(inprocess.ErrOutage)
			}
			got := runContract(ctx, t, a, nil, "--provider=cloud", "--yes", "--run=^creation/runs$", "--patience=10s")
			if got.code != 2 || !strings.Contains(got.err, "could not be told") || !strings.Contains(got.err, "Left at the backend: contract-creation-runs/runs") {
				t.Errorf("%s: it ends with %d %q, want 2, and that it could not be told", name, got.code, got.err)
			}
			if !strings.Contains(got.out, "checks passed") {
				t.Errorf("%s: it prints %q, want the sums", name, got.out)
			}
		})
	}
}

// TestContractOfACallThatHangs holds that a pod is reported if a hanging call may still create it after the run.
func TestContractOfACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		hang := make(chan struct{})
		a.begin = func(*corev1.Pod) { <-hang }
		got := runContract(t.Context(), t, a, nil, "--provider=cloud", "--yes", "--run=^creation/runs$", "--patience=10s")
		if got.code != 1 || !strings.Contains(got.err, "Left at the backend: contract-creation-runs/runs") || !strings.Contains(got.err, "a call of the provider hangs") {
			t.Errorf("it ends with %d %q, want 1 and the pod", got.code, got.err)
		}
		close(hang)
		synctest.Wait()
	})
}

// TestContractThatCannotBegin holds that each mistake is named, and that no pods and no files are left.
func TestContractThatCannotBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		args   []string
		outage bool
		want   string
	}{
		"no provider":           {nil, false, "set --provider to one of: closed, cloud"},
		"an unknown provider":   {[]string{"--provider=clout"}, false, `no such provider "clout": there are: closed, cloud; did you mean cloud?`},
		"a bad configuration":   {[]string{"--provider=cloud", "--provider-config=/c.yaml"}, false, "provider cloud: /c.yaml:1: unknown field"},
		"no credentials":        {[]string{"--provider=closed"}, false, "provider closed: nothing was made: open the provider: closed: 401 Unauthorized: set CLOUD_TOKEN"},
		"a dark backend":        {[]string{"--provider=cloud"}, true, "provider cloud: nothing was made: list the pods at the backend"},
		"a bad expression":      {[]string{"--provider=cloud", "--run=("}, false, "--run: error parsing regexp"},
		"no such check":         {[]string{"--provider=cloud", "--run=^creatoin/"}, false, `--run "^creatoin/": no check has such a name`},
		"no pods":               {[]string{"--provider=cloud", "--many=0"}, false, "--many 0: want 1 or more"},
		"no patience":           {[]string{"--provider=cloud", "--patience=1ms"}, false, "--patience 1ms: want 1s or more"},
		"no path":               {[]string{"--provider=cloud", "--program=program"}, false, `--program "program": want a path from the root`},
		"no image":              {[]string{"--provider=cloud", "--image="}, false, "--image: want the name of an image"},
		"an unknown format":     {[]string{"--provider=cloud", "--result=DIR/r.txt", "--backend=b"}, false, "want a name that ends in .json, .yaml or .yml"},
		"results of what":       {[]string{"--provider=cloud", "--result=DIR/r.json"}, false, "--result needs --backend"},
		"no such folder":        {[]string{"--provider=cloud", "--result=DIR/none/r.json", "--backend=b"}, false, "--result DIR/none/r.json: "},
		"a folder":              {[]string{"--provider=cloud", "--result=DIR/folder.json", "--backend=b"}, false, "it is there, and no plain file"},
		"results, and all dark": {[]string{"--provider=cloud", "--result=DIR/r.json", "--backend=b"}, true, "nothing was made"},
		"an unknown flag":       {[]string{"--provider=cloud", "--imgae=x"}, false, "unknown flag --imgae; did you mean --image?"},
		"no settings":           {[]string{"--provider=cloud", "--config=DIR/none.yaml"}, false, "read configuration: open DIR/none.yaml"},
		"an unknown setting":    {[]string{"--config=testdata/contract.yaml"}, false, `"providerConfg"`},
		"a bad level":           {[]string{"--provider=cloud", "--log-level=loud"}, false, `--log-level "loud"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o700); err != nil {
				t.Fatal(err)
			}
			args := []string{"--yes"}
			for _, arg := range tt.args {
				args = append(args, strings.ReplaceAll(arg, "DIR", dir))
			}
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t)
				if tt.outage {
					a.cloud.Fail(inprocess.ErrOutage)
				}
				got := runContract(t.Context(), t, a, nil, args...)
				if want := strings.ReplaceAll(tt.want, "DIR", dir); got.code != 2 || !strings.Contains(got.err, want) {
					t.Errorf("it ends with %d %q, want 2 %q", got.code, got.err, want)
				}
				if a.made > 0 {
					t.Errorf("it made %d pods", a.made)
				}
			})
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
				t.Errorf("the folder for the results has %v, %v, want what was there", files, err)
			}
		})
	}
}

// TestContractThatFails holds that the output and the file name the failed checks and the reason for each.
func TestContractThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cloud.json")
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t)
		a.created = func(pod *corev1.Pod) { _ = a.cloud.Lose(pod.UID) }
		got := runContract(t.Context(), t, a, nil, "--provider=cloud", "--yes", "--run=^creation/runs$", "--patience=10s", "--result", path, "--backend=b")
		if got.code != 1 || !strings.Contains(got.out, "failed  creation/runs") || !strings.Contains(got.out, "why it matters: ") {
			t.Errorf("it ends with %d: %s", got.code, got.out)
		}
		f, err := providertest.ReadResultFile(path)
		if err != nil || !f.Partial || len(f.Checks) != 1 || f.Checks[0].Outcome != providertest.Failed || f.Checks[0].Detail == "" {
			t.Errorf("the results: %v %+v", err, f)
		}
	})
}
