// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/zun"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// keystone is OpenStack Keystone of Debian, on the loopback address, with its own database.
type keystone struct {
	url string // without /v3
	dir string
}

// startKeystone runs Keystone until the test ends.
func startKeystone(t *testing.T) keystone {
	t.Helper()
	k := keystone{dir: t.TempDir()}
	path := func(name string) string { return filepath.Join(k.dir, name) }
	settings := "[DEFAULT]\nlog_file = " + path("log") + "\n[database]\nconnection = sqlite:///" + path("db") + "\n[token]\nprovider = fernet\n"
	for _, section := range []string{"fernet_tokens", "fernet_receipts", "credential"} {
		settings += "[" + section + "]\nkey_repository = " + path("keys") + "\n"
	}
	if err := os.WriteFile(path("conf"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	manage := func(args ...string) {
		t.Helper()
		if _, err := run(t, nil, "keystone-manage", append([]string{"--config-file", path("conf")}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(path("keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	manage("db_sync")
	if _, err := run(t, nil, "python3", "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode=WAL')", path("db")); err != nil { // otherwise, readers block writers
		t.Fatal(err)
	}
	manage("fernet_setup", "--keystone-user", fmt.Sprint(os.Getuid()), "--keystone-group", fmt.Sprint(os.Getgid()))
	server := exec.Command("keystone-wsgi-public", "--host", "127.0.0.1", "--port", "0", "--", "--config-file", path("conf")) //nolint:gosec // of Debian
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	lines := bufio.NewScanner(out)
	for k.url == "" && lines.Scan() {
		if _, port, is := strings.Cut(lines.Text(), "Available at http://localhost:"); is {
			k.url = "http://127.0.0.1:" + strings.TrimSuffix(port, "/")
		}
	}
	if k.url == "" {
		t.Fatal("Keystone does not listen")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // it ends with Keystone
	manage("bootstrap", "--bootstrap-password", "admin-password", "--bootstrap-public-url", k.url+"/v3", "--bootstrap-region-id", "RegionOne")
	return k
}

// user returns the environment of OpenStack clients.
func (k keystone) user(name, password, project string) []string {
	return []string{
		"OS_AUTH_URL=" + k.url + "/v3", "OS_IDENTITY_API_VERSION=3", "OS_REGION_NAME=RegionOne", "OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default",
		"OS_USERNAME=" + name, "OS_PASSWORD=" + password, "OS_PROJECT_NAME=" + project,
	}
}

// token validates or revokes a token at Keystone, and returns the status of the response.
func (k keystone) token(method, token string) int {
	r, err := http.NewRequest(method, k.url+"/v3/auth/tokens", nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Subject-Token", token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// run runs a program, and returns its output. An error has both outputs.
func run(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...) //nolint:gosec // of Debian
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONWARNINGS=ignore", "LC_ALL=C.UTF-8", "COLUMNS=500"}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %q: %w: %s%s", name, args, err, &out, &errs)
	}
	return out.String(), nil
}

// peers are the emulator, the provider, Keystone and clients of other vendors.
type peers struct {
	*home
	keystone keystone
	user     []string // the environment of clients
	provider opened   // runs
}

// startPeers starts all peers with a project, and a provider that logs in with an application credential.
func startPeers(t *testing.T) *peers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &peers{keystone: startKeystone(t), home: &home{Home: remotetest.NewHome(t, "vk-0"), cloud: newCloud(ctx)}}
	p.cloud.Admits = func(token string) bool { return p.keystone.token(http.MethodGet, token) == http.StatusOK }
	p.cloud.web = httptest.NewServer(p.cloud.front)
	t.Cleanup(func() { p.cloud.close(); cancel() })
	admin := p.keystone.user("admin", "admin-password", "admin")
	p.user = p.keystone.user("vk", "the-password", "pods")
	for _, args := range []string{
		"project create pods", "user create --password the-password vk", "role add --project pods --user vk member", "service create --name zun container",
		"endpoint create --region RegionOne container public " + p.cloud.web.URL + strings.TrimSuffix(zun.Path, "/"),
	} {
		if _, err := run(t, admin, "openstack", strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, p.user, "openstack", "application", "credential", "create", "-f", "json", "vk")
	var application struct{ ID, Secret string }
	if err = errors.Join(err, json.Unmarshal([]byte(out), &application)); err != nil {
		t.Fatal(err)
	}
	p.config = p.cloud.config()
	p.config.Identity = Identity{AuthURL: p.keystone.url + "/v3", ApplicationCredentialID: application.ID, ApplicationCredentialSecret: config.Literal(application.Secret)}
	p.config.Region = "RegionOne"
	p.provider, _ = p.start()
	return p
}

// token returns the token of the last list.
func (p *peers) token() string {
	lists := p.cloud.front.Requests("ListContainers")
	return lists[len(lists)-1].Header.Get("X-Auth-Token")
}

// lists makes a new provider log in and list containers.
func (p *peers) lists(who Identity, cloudsFile, region string) error {
	c := p.config
	c.Identity, c.Region, c.CloudsFile = who, region, cloudsFile
	if cloudsFile != "" {
		c.Cloud = "mycloud"
	}
	_, d := newProvider(p.Input(), c, p.cloud.transport())
	_, err := d.List(p.Context())
	return err
}

// tells reports whether an error has each text.
func tells(err error, texts ...string) error {
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("got %w, want %q", err, text)
		}
	}
	return nil
}

// cloudsFile writes a clouds.yaml with the application credential.
func (p *peers) cloudsFile() string {
	p.Helper()
	i := p.config.Identity
	path := filepath.Join(p.TempDir(), "clouds.yaml")
	text := fmt.Sprintf("clouds:\n  mycloud:\n    auth_type: v3applicationcredential\n    auth: {auth_url: %q, application_credential_id: %q, application_credential_secret: %q}\n",
		i.AuthURL, i.ApplicationCredentialID, i.ApplicationCredentialSecret.Value(p.Context()))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

// zun runs the client of Zun. Its output must contain all of wants.
func (p *peers) zun(wants []string, args ...string) error {
	return p.client(p.user, "zun", wants, args...)
}

func (p *peers) client(env []string, name string, wants []string, args ...string) error {
	out, err := run(p.T, env, name, args...)
	for _, want := range wants {
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s %q: got %s, want %q", name, args, out, want)
		}
	}
	return err
}

// refused runs the client of Zun for a request that must fail. Its output must contain all of wants, because the exit code of some commands shows no
// failure.
func (p *peers) refused(wants []string, args ...string) error {
	out, err := run(p.T, p.user, "zun", args...)
	if text := out + fmt.Sprint(err); slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, want) }) {
		return fmt.Errorf("zun %q: got %s, want a refusal with %q", args, text, wants)
	}
	return nil
}

// untilShown waits until the client of Zun shows a container with a text.
func (p *peers) untilShown(name, want string) error {
	p.Until(name+" is "+want, func() (bool, string) {
		out, err := run(p.T, p.user, "zun", "show", name)
		return strings.Contains(out, want), fmt.Sprint(out, err)
	})
	return nil
}

// TestPeers runs Zun's own client and the provider on the emulator, with tokens of the real Keystone. `make zun-peers` writes the table.
func TestPeers(t *testing.T) {
	if os.Getenv("VK_ZUN_PEERS") == "" {
		t.Skip("it needs Keystone and the clients of OpenStack of Debian: make zun-peers")
	}
	p := startPeers(t)
	pod := p.Pod("default", "web", stays())
	stay, says := stays().Args()[0], program.Program{Print: []string{"heard"}}.Args()[0]
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the client finds the newest microversion", func() error { return p.zun([]string{"1.40"}, "version-list") }},
		{"a container runs", func() error {
			return p.zun([]string{"Creating"}, "run", "--name", "other", "--net", "network=pods", "--label", "of=others", "program", stay)
		}},
		{"it is shown as Running", func() error { return p.untilShown("other", "Running") }},
		{"it is listed", func() error { return p.zun([]string{"other", "Running"}, "list") }},
		{"a list is filtered by name", func() error {
			if out, err := run(t, p.user, "zun", "list", "--name", "others"); err != nil || strings.Contains(out, "other") {
				return fmt.Errorf("got %s, %w, want none", out, err)
			}
			return p.zun([]string{"other"}, "list", "--name", "other")
		}},
		{"its log is read", func() error { return p.zun([]string{"begun"}, "logs", "other") }},
		{"a command runs", func() error { return p.zun([]string{"heard"}, "exec", "other", "program", says) }},
		{"a command runs on a terminal, by the console proxy", func() error {
			return p.client(p.user, "script", []string{"heard"}, "-qec", "zun exec --interactive other program '"+says+"'", "/dev/null")
		}},
		{"a running container is not deleted", func() error {
			return p.refused([]string{"Cannot delete container", "in Running state"}, "delete", "other")
		}},
		{"it is paused, and goes on", func() error {
			if err := p.zun(nil, "pause", "other"); err != nil {
				return err
			}
			_ = p.untilShown("other", "Paused")
			if err := p.zun(nil, "unpause", "other"); err != nil {
				return err
			}
			return p.untilShown("other", "Running")
		}},
		{"it stops, and its exit code is told", func() error {
			if err := p.zun(nil, "stop", "--timeout", "1", "other"); err != nil {
				return err
			}
			return p.untilShown("other", "Exited(")
		}},
		{"it starts again", func() error {
			if err := p.zun(nil, "start", "other"); err != nil {
				return err
			}
			return p.untilShown("other", "Running")
		}},
		{"its actions are listed", func() error { return p.zun([]string{"create", "stop", "start"}, "action-list", "other") }},
		{"it is stopped and deleted by one request", func() error {
			if err := p.zun(nil, "delete", "--stop", "other"); err != nil {
				return err
			}
			p.Until("it is gone", func() (bool, string) {
				out, err := run(t, p.user, "zun", "list")
				return err == nil && !strings.Contains(out, "other"), out
			})
			return p.refused([]string{"404"}, "show", "other")
		}},
		{"a registry is made, listed and deleted", func() error {
			if err := p.zun([]string{"******"}, "registry-create", "--name", "login", "--username", "me", "--password", "mine", "--domain", "example.com"); err != nil {
				return err
			}
			if err := p.zun([]string{"login", "example.com"}, "registry-list"); err != nil {
				return err
			}
			return p.zun(nil, "registry-delete", "login")
		}},
		{"what only an administrator may set is refused", func() error { return p.refused([]string{"403"}, "create", "--image-pull-policy", "always", "program") }},
		{"the provider logs in with a password", func() error {
			return p.lists(Identity{AuthURL: p.config.Identity.AuthURL, Username: "vk", Password: config.Literal("the-password"), ProjectName: "pods"}, "", "RegionOne")
		}},
		{"the provider logs in with an application credential of a clouds.yaml", func() error { return p.lists(Identity{}, p.cloudsFile(), "RegionOne") }},
		{"a wrong secret is told", func() error {
			wrong := p.config.Identity
			wrong.ApplicationCredentialSecret = config.Literal("wrong")
			return tells(p.lists(wrong, "", "RegionOne"), "401 Unauthorized", "look at the credentials")
		}},
		{"an unknown region is told", func() error { return tells(p.lists(p.config.Identity, "", "nowhere"), `look at region "nowhere"`) }},
		{"the provider runs a pod with an application credential", func() error {
			p.Create(p.provider, pod)
			p.UntilRuns(p.provider, pod)
			return p.zun([]string{"Running", string(pod.UID)}, "show", p.provider.driver.owner.Name(identity.Of(pod)))
		}},
		{"a revoked token is renewed, and the pod goes on", func() error {
			old := p.token()
			if got := p.keystone.token(http.MethodDelete, old); got != http.StatusNoContent {
				return fmt.Errorf("revoke the token: %d", got)
			}
			p.Until("it logs in again", func() (bool, string) { return p.token() != old, "" })
			if out := p.Log(p.provider, pod); !strings.Contains(out, "begun") {
				return fmt.Errorf("its log is %q", out)
			}
			is, err := p.provider.GetPod(t.Context(), pod.Namespace, pod.Name)
			if err == nil && is.Status.Phase != corev1.PodRunning {
				err = errors.New(brief(is.Status))
			}
			return err
		}},
		{"a pod whose container others delete is lost", func() error {
			if err := p.zun(nil, "delete", "--stop", p.provider.driver.owner.Name(identity.Of(pod))); err != nil {
				return err
			}
			p.UntilGone(p.provider, pod)
			return nil
		}},
		{"a deleted application credential is told", func() error {
			if _, err := run(t, p.user, "openstack", "application", "credential", "delete", "vk"); err != nil {
				return err
			}
			return tells(p.lists(p.config.Identity, "", "RegionOne"), "Could not find Application Credential", "look at the credentials")
		}},
	} {
		result := "ok"
		if err := step.do(); err != nil {
			result = "**fails**"
			t.Errorf("%s: %v", step.what, err)
		}
		t.Logf("| %s | %s |", step.what, result)
	}
}
