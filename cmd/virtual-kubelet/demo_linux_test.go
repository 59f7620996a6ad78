// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	os.Exit(m.Run())
}

// demoFolder returns a folder with the programs of a release that the demo starts.
func demoFolder(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "devcluster")); err != nil {
		if os.Getenv("VK_REQUIRE_TESTAPI") == "1" {
			t.Fatal(err)
		}
		t.Skip("devcluster is not there; make bin/devcluster builds it")
	}
	folder := t.TempDir()
	for _, name := range []string{"devcluster", "runsc"} {
		if err := os.Symlink(filepath.Join(bin, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// makeDemoFiles builds the emulator and the image of the first pod.
func makeDemoFiles(t *testing.T, folder string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	for _, args := range [][]string{
		{"build", "-o", filepath.Join(folder, "emulate"), "./internal/emulate"},
		{"build", "-o", program, "./process/demo"},
		{"run", "./process/demo/pack", "-name", "demo", "-o", filepath.Join(folder, "demo-image.tar"), program, "hostname"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = filepath.Join("..", "..", "providers"), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestDemoRunsAPodAndLeavesNothing: the command starts a cluster, the backend and a node. The first pod runs, and kubectl works as described in the
// output. An interrupt ends all processes and removes all files.
func TestDemoRunsAPodAndLeavesNothing(t *testing.T) {
	for _, provider := range []string{"mock", "eci"} {
		t.Run(provider, func(t *testing.T) {
			folder, temporary := demoFolder(t), t.TempDir()
			if provider != "mock" {
				makeDemoFiles(t, folder)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, "demo", "--provider", provider, "--devcluster", filepath.Join(folder, "devcluster"))
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary, "PATH="+folder+":"+os.Getenv("PATH"),
				"ALIBABA_CLOUD_ACCESS_KEY_ID=of-the-user", "ECI_QUOTA_CPU=of-the-user")
			var problems bytes.Buffer
			cmd.Stderr = &problems
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			kubeconfig := ""
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said.WriteString(lines.Text() + "\n")
				if _, path, is := strings.Cut(lines.Text(), "KUBECONFIG="); is {
					kubeconfig = path
				}
				if strings.HasPrefix(lines.Text(), "stopping ") { // a user who is in a hurry
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				}
				if strings.HasPrefix(lines.Text(), "Ctrl-C ") {
					seeRunning(t, kubeconfig)
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
				}
			}
			if err := cmd.Wait(); err != nil || kubeconfig == "" {
				t.Errorf("got %v, %s\n%s", err, &problems, said.String())
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("the folder for temporary files has %v, %v", left, err)
			}
			seeNoProcess(t, temporary)
		})
	}
}

// seeRunning checks that a user sees the first pod.
func seeRunning(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Error(err)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Error(err)
		return
	}
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil || pod.Status.Phase != "Running" || pod.Spec.NodeName != "virtual-node" {
		t.Errorf("the first pod is %+v, %v", pod, err)
	}
}

// seeNoProcess checks that no process has a file of the folder in its command line.
func seeNoProcess(t *testing.T, folder string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("processes: got %d, %v", len(lines), err)
	}
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte(folder)) { // an error: it has ended
			t.Errorf("a process goes on: %s %s", file, bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
		}
	}
}

// TestDemoSaysWhatIsMissing: without the programs of the release, the error says where to find them. For a provider without an emulator, the error
// asks for a backend.
func TestDemoSaysWhatIsMissing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	devcluster := filepath.Join(t.TempDir(), "devcluster")
	if err := os.WriteFile(devcluster, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"there is no devcluster beside this program (" + filepath.Dir(self) + "): it is in the archive of the release, https://": {"--provider", "mock"},
		"there is no emulate beside this program (" + filepath.Dir(self) + ", " + filepath.Dir(devcluster) + ")":                 {"--provider", "zun", "--devcluster", devcluster},
		"there is no demo-image.tar beside":                                     {"--devcluster", devcluster},
		"nomad: there is no emulator of its backend: set --provider-config":     {"--provider", "nomad", "--devcluster", devcluster},
		`demo: unexpected argument "mock": the provider is given by --provider`: {"mock"},
		"--devcluster: stat /nosuch/devcluster: no such file":                   {"--devcluster", "/nosuch/devcluster"},
	} {
		cmd := exec.CommandContext(t.Context(), self, append([]string{"demo"}, args...)...)
		cmd.Env = []string{"PATH=/nosuch"}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("demo %s: got %v, %s\nwant %s", strings.Join(args, " "), err, out, want)
		}
	}
}
