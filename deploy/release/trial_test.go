// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var (
	trialFolder = flag.String("trial", "", "try the files of the release in this `folder`")
	trialKey    = flag.String("trial-key", "", "`file` with the public key of its signature")
	trialReport = flag.String("trial-report", "", "`file` for the report")
)

// trial is the trial of one release.
type trial struct {
	dir, version, chart string
	rows                []string
}

// record adds a row of the report.
func (r *trial) record(t *testing.T, artifact, how string, try func(t *testing.T) string) {
	result, said := "**failed**", ""
	if t.Run(artifact, func(t *testing.T) { said = try(t) }) {
		result = "passed"
	}
	if said != "" {
		result += ": " + said
	}
	r.rows = append(r.rows, fmt.Sprintf("| `%s` | %s | %s | %s |", strings.ReplaceAll(strings.ReplaceAll(artifact, r.version, "VERSION"), r.chart, "VERSION"), r.size(artifact), how, result))
}

// size returns the total size of the files that match a pattern.
func (r *trial) size(pattern string) string {
	total := int64(0)
	for _, name := range r.findAny(pattern) {
		if info, err := os.Stat(name); err == nil {
			total += info.Size()
		}
	}
	if total < 1<<20 {
		return fmt.Sprintf("%d KiB", (total+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", (total+1<<19)>>20)
}

// TestReleaseTrial tries each file of a release that `make release` made, and writes the report.
func TestReleaseTrial(t *testing.T) {
	if *trialFolder == "" {
		t.Skip("make release-trial makes a release and tries it")
	}
	images, err := filepath.Glob(filepath.Join(*trialFolder, program+"_*_oci.tar"))
	if err != nil || len(images) != 1 {
		t.Fatalf("the folder %s has the images %q, %v: want one", *trialFolder, images, err)
	}
	r := &trial{dir: *trialFolder, version: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(images[0]), program+"_"), "_oci.tar")}
	r.chart = (&release{version: r.version}).chartVersion()
	arch := runtime.GOARCH
	here := "_" + r.version + "_linux_" + arch
	r.record(t, "SHA256SUMS", "`sha256sum --check`", r.checkSums)
	r.record(t, "SHA256SUMS.sig", "the public key verifies it with `openssl pkeyutl`, as the documentation says, and refuses a changed file", r.verifySignature)
	r.record(t, program+here+".tar.gz", "unpacked; `virtual-kubelet version`, and `virtual-kubelet demo` with providers mock, process and eci until a pod runs, with the programs and the image in it",
		r.runArchive)
	r.record(t, program+"_*.tar.gz", "each archive for Linux and macOS unpacked: its programs are for its platform", r.readArchives)
	if slices.ContainsFunc(r.platforms(t), func(p string) bool { return strings.HasPrefix(p, "windows/") }) {
		r.record(t, program+"_*.zip", "each archive for Windows unpacked: its program is for its platform", r.readArchives)
	}
	r.record(t, program+"_*_"+arch+".deb", "dpkg installs it on an empty root, upgrades, removes and purges it; `virtual-kubelet --version` in it", func(t *testing.T) string {
		installDeb(t, r.find(t, program+"_*_"+arch+".deb")[0], r.version)
		return ""
	})
	r.record(t, program+"-*."+machineArch+".rpm", "rpm installs it on an empty root, upgrades and erases it; `virtual-kubelet --version` in it", func(t *testing.T) string {
		installRPM(t, r.find(t, program+"-*."+machineArch+".rpm")[0], r.version)
		return ""
	})
	r.record(t, program+"_"+r.version+"_oci.tar", "imported into containerd; `virtual-kubelet version` in a container", r.runImage)
	r.record(t, program+"-chart_"+r.version+"_oci.tar", "rendered by Helm from the layout and applied to a cluster of `devcluster`: the Deployment has the image of this version", r.installChart)
	r.record(t, program+"-"+r.chart+".tgz", "it is the chart in the OCI layout", r.compareCharts)
	r.record(t, "*.spdx.json", "every module has a licence, and the checksum is of the binary", r.readDescriptions)
	r.record(t, "*.cdx.json", "the same modules and licences as in SPDX", r.readDescriptions)
	r.record(t, "NOTICE_"+r.version+".txt", "it names every module of every binary", r.readNotice)
	r.record(t, program+"_"+r.version+"_krew.yaml", "the checksums are of the archives, and the files are in them", r.readKrew)
	if *trialReport != "" {
		r.writeReport(t, *trialReport)
	}
}

// find returns the files of a pattern, which must exist.
func (r *trial) find(t *testing.T, pattern string) []string {
	t.Helper()
	names := r.findAny(pattern)
	if len(names) == 0 {
		t.Fatalf("the release has no %s", pattern)
	}
	return names
}

// output returns the output of a command, which must succeed.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// platforms returns the platforms of the release, which end the names of its archives.
func (r *trial) platforms(t *testing.T) (all []string) {
	t.Helper()
	for _, archive := range append(r.find(t, program+"_*.tar.gz"), r.findAny(program+"_*.zip")...) {
		all = append(all, platformInName(archive))
	}
	return all
}

func (r *trial) findAny(pattern string) []string {
	names, _ := filepath.Glob(filepath.Join(r.dir, pattern)) // the patterns are correct
	return names
}

func platformInName(archive string) string {
	words := strings.Split(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), ".zip"), "_")
	return words[len(words)-2] + "/" + words[len(words)-1]
}

func (r *trial) checkSums(t *testing.T) string {
	out := output(t, r.dir, "sha256sum", "--check", "SHA256SUMS")
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), "SHA256SUMS") && !strings.Contains(out, e.Name()+": OK\n") {
			t.Errorf("SHA256SUMS does not name %s", e.Name())
		}
	}
	return fmt.Sprintf("%d files", strings.Count(out, ": OK\n"))
}

func (r *trial) verifySignature(t *testing.T) string {
	dir := t.TempDir()
	decoded := filepath.Join(dir, "sig")
	write(t, decoded, output(t, r.dir, "base64", "-d", "SHA256SUMS.sig"))
	verify := func(file string) error {
		return exec.CommandContext(t.Context(), "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", *trialKey, "-rawin", "-in", file, "-sigfile", decoded).Run()
	}
	if err := verify(filepath.Join(r.dir, "SHA256SUMS")); err != nil {
		t.Errorf("the signature does not hold: %v", err)
	}
	other := filepath.Join(dir, "other")
	write(t, other, "0 other\n")
	if err := verify(other); err == nil {
		t.Error("the signature holds for another file")
	}
	return ""
}

func (r *trial) runArchive(t *testing.T) string {
	dir := t.TempDir()
	name := filepath.Base(r.find(t, program+"_"+r.version+"_linux_"+runtime.GOARCH+".tar.gz")[0])
	output(t, r.dir, "tar", "xzf", name, "-C", dir)
	folder := filepath.Join(dir, strings.TrimSuffix(name, ".tar.gz"))
	if out := output(t, folder, "./"+program, "version"); !strings.Contains(out, r.version) {
		t.Errorf("version says %s", out)
	}
	for _, provider := range []string{"mock", "process", "eci"} {
		cmd := exec.CommandContext(t.Context(), "./"+program, "demo", "--provider", provider)
		var problems bytes.Buffer
		cmd.Dir, cmd.Stderr = folder, &problems
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "pod/first ") && strings.Contains(lines.Text(), " Running ") {
				ran = true
			}
			if strings.HasPrefix(lines.Text(), "Ctrl-C ") {
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Error(err)
				}
			}
		}
		if err := cmd.Wait(); err != nil || !ran {
			t.Errorf("demo --provider %s: the pod ran: %v; %v, %s", provider, ran, err, &problems)
		}
	}
	return ""
}

// readArchives sees that each program in the archives is for the platform in the name of the archive.
func (r *trial) readArchives(t *testing.T) string {
	pattern := strings.TrimPrefix(t.Name(), "TestReleaseTrial/")
	programs := 0
	for _, file := range r.find(t, pattern) {
		for name, text := range contentsOf(t, file) {
			if !strings.HasPrefix(name, "*") || strings.HasSuffix(name, "/") {
				continue
			}
			if got := platformOf(strings.NewReader(text)); got != platformInName(file) {
				t.Errorf("%s in %s is for %q", name, file, got)
			}
			programs++
		}
	}
	return fmt.Sprintf("%d programs", programs)
}

// platformOf returns the platform of a program, by its header.
func platformOf(program io.ReaderAt) string {
	if f, err := elf.NewFile(program); err == nil {
		return "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	}
	if f, err := macho.NewFile(program); err == nil {
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	}
	if f, err := pe.NewFile(program); err == nil {
		return "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]
	}
	return ""
}

// runImage imports the image into a containerd of its own, and runs the program in a container.
func (r *trial) runImage(t *testing.T) string {
	dir, err := os.MkdirTemp("/run", "trial") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Skipf("only root runs containerd: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "config.toml")
	write(t, config, "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n")
	socket := filepath.Join(dir, "sock")
	daemon := exec.CommandContext(t.Context(), "containerd", "--config", config, "--root", filepath.Join(dir, "root"), "--state", filepath.Join(dir, "state"), "--address", socket)
	said, err := daemon.StderrPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "successfully booted") {
	}
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, said) }() // it ends with the daemon
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		<-drained
		_ = daemon.Wait() // a signal ended it
	})
	ctr := func(args ...string) string {
		t.Helper()
		return output(t, "", "ctr", append([]string{"--address", socket}, args...)...)
	}
	ctr("images", "import", "--snapshotter", "native", "--index-name", "trial.test/"+program+":"+r.version, r.find(t, program+"_"+r.version+"_oci.tar")[0])
	if out := ctr("run", "--rm", "--snapshotter", "native", "trial.test/"+program+":"+r.version, "trial", "/"+program, "version"); !strings.Contains(out, r.version) {
		t.Errorf("version says %s", out)
	}
	return ""
}

// chartOfLayout returns the chart in the OCI layout.
func (r *trial) chartOfLayout(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open(r.find(t, program+"-chart_"+r.version+"_oci.tar")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	files, _ := untar(t, f)
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v: %s", err, files["index.json"])
	}
	var manifest struct{ Layers []descriptor }
	follow(t, files, index.Manifests[0], &manifest)
	return follow(t, files, manifest.Layers[0], nil)
}

func (r *trial) installChart(t *testing.T) string {
	c, err := loader.LoadArchive(bytes.NewReader(r.chartOfLayout(t)))
	if err != nil {
		t.Fatal(err)
	}
	given, err := util.ToRenderValues(c, map[string]any{
		"nodeName": "trial", "provider": "mock", "identity": map[string]any{"mode": "serviceAccount"}, "serving": map[string]any{"mode": "selfSigned"},
	}, common.ReleaseOptions{Name: "trial", Namespace: "default", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(c, given)
	if err != nil {
		t.Fatal(err)
	}
	var manifests strings.Builder
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/tests/") {
			manifests.WriteString("---\n" + text + "\n")
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "chart.yaml")
	write(t, file, manifests.String())
	devcluster, err := filepath.Abs(r.find(t, "devcluster_"+r.version+"_linux_"+runtime.GOARCH)[0])
	if err != nil {
		t.Fatal(err)
	}
	output(t, "", devcluster, "up", "--detach", "--dir", dir, "--name", "trial")
	t.Cleanup(func() { _ = exec.Command(devcluster, "down", "--delete", "--dir", dir, "--name", "trial").Run() })
	kubectl := func(args ...string) string {
		t.Helper()
		return output(t, "", devcluster, append([]string{"kubectl", "--dir", dir, "--name", "trial"}, args...)...)
	}
	applied := kubectl("apply", "--server-side", "-f", file)
	if image := kubectl("get", "deployment", "-o", "jsonpath={.items[*].spec.template.spec.containers[0].image}"); !strings.HasSuffix(image, program+":"+r.version) {
		t.Errorf("the Deployment has the image %q", image)
	}
	return fmt.Sprintf("%d objects", strings.Count(applied, "serverside-applied"))
}

func (r *trial) compareCharts(t *testing.T) string {
	packed, err := os.ReadFile(r.find(t, program+"-"+r.chart+".tgz")[0])
	if err != nil || !bytes.Equal(packed, r.chartOfLayout(t)) {
		t.Errorf("they differ, %v", err)
	}
	return ""
}

// description is what both descriptions of a binary have.
type description struct {
	Packages   []struct{ Name, VersionInfo, LicenseDeclared string }
	Components []struct {
		Name, Version string
		Licenses      []struct{ Expression string }
	}
	Metadata struct {
		Component struct{ Hashes []struct{ Content string } }
	}
	SPDXVersion string
	SpecVersion string
}

// readDescriptions compares the descriptions of each binary with each other and with the binary.
func (r *trial) readDescriptions(t *testing.T) string {
	modules := map[string]bool{}
	binaries := 0
	for _, file := range r.find(t, "*.spdx.json") {
		base := strings.TrimSuffix(file, ".spdx.json")
		var spdx, cycloneDX description
		read(t, file, &spdx)
		read(t, base+".cdx.json", &cycloneDX)
		if spdx.SPDXVersion != "SPDX-2.3" || cycloneDX.SpecVersion != "1.6" || len(spdx.Packages) != len(cycloneDX.Components)+1 || len(spdx.Packages) < 2 {
			t.Errorf("%s: SPDX %s has %d modules, CycloneDX %s has %d", base, spdx.SPDXVersion, len(spdx.Packages)-1, cycloneDX.SpecVersion, len(cycloneDX.Components))
			continue
		}
		for i, c := range cycloneDX.Components {
			p := spdx.Packages[i+1]
			if p.Name != c.Name || p.VersionInfo != c.Version || len(c.Licenses) != 1 || p.LicenseDeclared != c.Licenses[0].Expression {
				t.Errorf("%s: SPDX has %+v, CycloneDX %+v", base, p, c)
			}
			modules[p.Name+" "+p.VersionInfo] = true
		}
		binary := base
		if !isThere(binary) {
			binary += ".exe"
		}
		digest, err := digestOf(binary)
		if err != nil || len(cycloneDX.Metadata.Component.Hashes) != 1 || digest != cycloneDX.Metadata.Component.Hashes[0].Content {
			t.Errorf("%s: the description is of another binary: %v", base, err)
		}
		binaries++
	}
	return fmt.Sprintf("%d binaries, %d modules", binaries, len(modules))
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func (r *trial) readNotice(t *testing.T) string {
	notice, err := os.ReadFile(r.find(t, "NOTICE_"+r.version+".txt")[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range r.find(t, "*.spdx.json") {
		var spdx description
		read(t, file, &spdx)
		for _, p := range spdx.Packages[1:] {
			if !bytes.Contains(notice, []byte("\n"+p.Name+" "+p.VersionInfo+"\n")) {
				t.Errorf("it does not name %s of %s", p.Name, file)
			}
		}
	}
	return fmt.Sprintf("%d texts", bytes.Count(notice, []byte(strings.Repeat("=", 80))))
}

func (r *trial) readKrew(t *testing.T) string {
	text, err := os.ReadFile(r.find(t, program+"_"+r.version+"_krew.yaml")[0])
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Spec struct {
			Platforms []struct {
				URI, SHA256 string
				Files       []struct{ From string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil {
		t.Fatal(err)
	}
	for _, p := range plugin.Spec.Platforms {
		archive := filepath.Join(r.dir, filepath.Base(p.URI))
		digest, err := digestOf(archive)
		if err != nil || digest != p.SHA256 {
			t.Errorf("%s: the checksum is %s, %v", p.URI, digest, err)
			continue
		}
		inside := contentsOf(t, archive)
		for _, f := range p.Files {
			_, program := inside["*"+f.From]
			if _, has := inside[f.From]; !has && !program {
				t.Errorf("%s has no %s", p.URI, f.From)
			}
		}
	}
	if len(plugin.Spec.Platforms) != len(r.platforms(t)) {
		t.Errorf("it has %d platforms, and the release %q", len(plugin.Spec.Platforms), r.platforms(t))
	}
	return ""
}

// writeReport writes the page about the trial.
func (r *trial) writeReport(t *testing.T, file string) {
	t.Helper()
	text := `# The files of a release

` + "`make release-trial`" + ` writes this page. It clones the repository into an empty folder, runs ` + "`make release`" + ` there with a key, and tries each file on
` + runtime.GOOS + "/" + runtime.GOARCH + `. A file for another processor is only read. Checksums are not here, because they change with the version; two builds of one commit are
equal, which [a test](security.md) proves. An artifact with an asterisk is several files, with their size together.

Platforms of this run: ` + strings.Join(r.platforms(t), ", ") + `.

| Artifact | Size | Trial | Result |
|---|---|---|---|
` + strings.Join(r.rows, "\n") + `

## What CI of a public host adds

No network is needed for the above. On a host with an identity provider for its jobs, the workflow of a release also makes, after ` + "`make release`" + `:

| Step | It adds |
|---|---|
| ` + "`cosign sign-blob --yes --bundle SHA256SUMS.bundle dist/SHA256SUMS`" + ` | a signature without a key of its own: the certificate names the workflow, and a public log has the entry |
| ` + "`cosign sign --yes IMAGE@DIGEST`" + ` and the same for the chart, after both are pushed to a registry | signatures where a cluster's admission finds them |
| ` + "`cosign attest --yes --type spdxjson --predicate dist/virtual-kubelet_VERSION_linux_amd64.spdx.json IMAGE@DIGEST`" + ` | the SBOM at the image |
| the host's attestation of provenance (SLSA) for the files in ` + "`SHA256SUMS`" + ` | a statement which commit and workflow made them |
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // a page of the documentation
		t.Fatal(err)
	}
}
