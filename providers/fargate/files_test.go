// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// withFiles adds a volume with files to a pod.
func withFiles(pod *corev1.Pod, name string, source corev1.VolumeSource, files ...podspec.File) *service.Inputs {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	r := testResolved(pod)
	r.Files = map[string][]podspec.File{name: files}
	return r
}

var (
	configMap = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
	token     = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}
)

// arnsOf returns the ARNs of stored secrets.
func arnsOf(secrets map[string]secret) map[string]string {
	out := map[string]string{}
	for as, s := range secrets {
		out[as] = "arn:" + s.name
	}
	return out
}

// TestFilesAreShared checks that two pods with equal files share a secret and a definition, and that the files
// of a token belong to one pod.
func TestFilesAreShared(t *testing.T) {
	m := testMapping(t)
	of := func(source corev1.VolumeSource, uid, content string) (name, family string) {
		pod := testPod()
		pod.UID = types.UID("uid-" + uid)
		r := withFiles(pod, "conf", source, podspec.File{Path: "a", Data: []byte(content), Mode: 0o400})
		secrets, err := vaultOf(m, "k").secrets(r)
		if err != nil {
			t.Fatal(err)
		}
		d, err := m.definition(r, arnsOf(secrets))
		if err != nil {
			t.Fatal(err)
		}
		first := d.ContainerDefinitions[0]
		if *first.Name != filesName || *d.ContainerDefinitions[1].DependsOn[0].ContainerName != filesName || len(first.Secrets) != 1 || first.Secrets[0].ValueFrom == nil {
			t.Fatalf("the first container is %+v", first)
		}
		if mounts := d.ContainerDefinitions[4].MountPoints; !*mounts[len(mounts)-1].ReadOnly {
			t.Error("a container may change the files of a ConfigMap")
		}
		text, err := json.Marshal(d)
		if err != nil || strings.Contains(string(text), canary) {
			t.Errorf("the definition has a secret: %s, %v", text, err)
		}
		for as, s := range secrets {
			if strings.HasPrefix(as, sharedFiles) || strings.HasPrefix(as, ownFiles) {
				name = s.name
			}
		}
		return name, *d.Family
	}
	aName, aFamily := of(configMap, "1", canary)
	if name, family := of(configMap, "2", canary); name != aName || family != aFamily {
		t.Errorf("replicas have the secrets %s and %s", aName, name)
	}
	if name, family := of(configMap, "1", "other"); name == aName || family == aFamily {
		t.Errorf("pods with other files share the secret %s", name)
	}
	aName, aFamily = of(token, "1", canary)
	if name, family := of(token, "1", "renewed"); name != aName || family != aFamily {
		t.Errorf("a pod that is created again has another definition: its task is another one: %s and %s", aName, name)
	}
	if name, family := of(token, "2", canary); name == aName || family == aFamily {
		t.Errorf("two pods share the secret of a token, %s", name)
	}
}

// tokens gives each pod a token that the test can renew.
type tokens struct{ value string }

// Token implements node.PodTokens.
func (t *tokens) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: t.value}, nil
}

// inputsOf returns the inputs of a pod, with the objects of values and a token.
func inputsOf(t *testing.T, pod *corev1.Pod, own *tokens) *service.Inputs {
	t.Helper()
	in := testResolved(pod)
	in.Files = map[string][]podspec.File{}
	for i := range pod.Spec.Volumes {
		files, _, err := podspec.Sources{Objects: values{}, Tokens: own}.Files(t.Context(), pod, &pod.Spec.Volumes[i], field.NewPath("volume"))
		if err != nil {
			t.Fatal(err)
		}
		in.Files[pod.Spec.Volumes[i].Name] = files
	}
	return in
}

// TestTokensAreWrittenOnce checks that a repeated CreatePod writes one version of the pod's secret, and a second
// version only after the token was renewed.
func TestTokensAreWrittenOnce(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	own := &tokens{"first"}
	p.kit.UsePodTokens(own)
	pod := podOf("token", program.Program{Stay: program.Forever})
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	mend := c.Break(emulator.Fault{Operations: []string{"RunTask"}, Answer: func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"__type":"InvalidParameterException","message":"The subnet is not there."}`, http.StatusBadRequest)
	}})
	tries := func() {
		t.Helper()
		for range 5 {
			if err := p.kit.CreatePod(t.Context(), pod); err == nil {
				t.Fatal("a task ran, though ECS refuses all")
			}
		}
	}
	versions := func() int { return len(c.Requests("CreateSecret", "PutSecretValue")) - 1 } // one of them is for the key of names
	tries()
	if n := versions(); n != 1 {
		t.Errorf("five tries to create a pod wrote %d versions of its secret, want one", n)
	}
	own.value = "second"
	tries()
	if n := versions(); n != 3 { // CreateSecret reports that the secret exists
		t.Errorf("a token that was renewed is %d requests, want 3", n)
	}
	mend()
	if err := p.kit.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	name := ownName(p.mapping.owner, pod.UID)
	p.leave(name) // a removed secret is stored again
	tick := everyMoment(t)
	for slices.Contains(c.Secrets(), name) {
		tick("the secret is removed")
	}
	before := versions()
	if _, err := p.prepare(t.Context(), inputsOf(t, pod, own)); err != nil || versions() != before+1 || !slices.Contains(c.Secrets(), name) {
		t.Errorf("a secret that was removed: %d requests, %v", versions()-before, err)
	}
}

// TestSecretOfARefusedPodIsRemoved checks a pod whose definition turns out to be too large after its token was
// stored.
func TestSecretOfARefusedPodIsRemoved(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	p.kit.UsePodTokens(values{})
	pod := podOf("refused", program.Program{})
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LONG", Value: strings.Repeat("x", maxDefinition)}}
	if err := p.kit.CreatePod(t.Context(), pod); !errdefs.IsInvalidInput(err) {
		t.Fatalf("got %v", err)
	}
	if n := len(c.Requests("CreateSecret")); n != 2 { // one of them is for the key of names
		t.Fatalf("%d secrets were kept, so this proves nothing", n)
	}
	tick := everyMoment(t)
	for slices.Contains(c.Secrets(), ownName(p.mapping.owner, pod.UID)) {
		tick("the secret is removed")
	}
}

// TestSecretsScheduledForDeletion has a cleanup that schedules old secrets for deletion. It costs no pod, even
// one created during the recovery window.
func TestSecretsScheduledForDeletion(t *testing.T) {
	c := cloudOf(t)
	pod := podOf("web", program.Program{Stay: program.Forever})
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: token}}
	for _, value := range []string{"first", "second"} {
		p := open(t, c) // a new provider remembers nothing
		p.kit.UsePodTokens(&tokens{value})
		if _, err := p.prepare(t.Context(), inputsOf(t, pod, &tokens{value})); err != nil {
			t.Fatalf("with the %s token: %v", value, err)
		}
		if value == "second" {
			if err := p.kit.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			until(t, p, "web", "running", isRunning)
		}
		all := c.Secrets()
		own := ownName(p.mapping.owner, pod.UID)
		if len(all) != 3 || !slices.Contains(all, own) {
			t.Fatalf("with the %s token there are the secrets %v", value, all)
		}
		api := p.client.secrets
		if value == "second" {
			got, err := api.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &own})
			if err != nil || !strings.Contains(opened(aws.ToString(got.SecretString)), value) {
				t.Errorf("the secret of the token is restored, and has not the new one: %v", err)
			}
			continue
		}
		for _, name := range all {
			if _, err := api.DeleteSecret(t.Context(), &secretsmanager.DeleteSecretInput{SecretId: &name}); err != nil {
				t.Fatal(err)
			}
		}
		if left := c.Secrets(); len(left) > 0 {
			t.Fatalf("%v are not scheduled for deletion", left)
		}
	}
}

// TestFilesThatAreTooLarge checks that too large files are refused, and that others are split into several
// secrets.
func TestFilesThatAreTooLarge(t *testing.T) {
	m := testMapping(t)
	random := func(n int) []byte {
		out, from := make([]byte, n), rand.NewChaCha8([32]byte{})
		_, _ = from.Read(out) // the read never fails
		return out
	}
	for _, c := range []struct {
		source corev1.VolumeSource
		bytes  int
		pieces int // 0 is refused
	}{{configMap, 40 << 10, 1}, {configMap, 300 << 10, 7}, {configMap, 1 << 20, 0}, {token, 40 << 10, 1}, {token, 50 << 10, 0}} {
		secrets, err := vaultOf(m, "k").secrets(withFiles(testPod(), "conf", c.source, podspec.File{Path: "a", Data: random(c.bytes)}))
		if c.pieces == 0 {
			if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.volumes") {
				t.Errorf("%d bytes: got %v", c.bytes, err)
			}
			continue
		}
		n := 0
		for as, s := range secrets {
			if as != "main" {
				n++
			}
			if len(s.text) > maxSecret {
				t.Errorf("a secret has %d bytes", len(s.text))
			}
		}
		if err != nil || n != c.pieces {
			t.Errorf("%d bytes are %d secrets, want %d, %v", c.bytes, n, c.pieces, err)
		}
	}
	_, err := vaultOf(m, "k").secrets(withFiles(testPod(), "conf", configMap, podspec.File{Path: "../../etc/passwd"}))
	if !errdefs.IsInvalidInput(err) {
		t.Errorf("a file that leads out of its volume: got %v", err)
	}
}

// TestLogins checks that a pull credential of the pod is stored as a secret, which the definition names if the
// credential is for its image.
func TestLogins(t *testing.T) {
	m := testMapping(t)
	pod := testPod()
	pod.Spec.Containers[0].Image = "private.example:5000/web"
	r := testResolved(pod)
	r.Logins = []node.RegistryCredential{{Registry: "other.example", Username: "x", Password: "y"}, {Registry: "private.example:5000", Username: "user", Password: canary}}
	secrets, err := vaultOf(m, "k").secrets(r)
	if err != nil || secrets["login/main"].text != `{"password":"`+canary+`","username":"user"}` || len(secrets) != 2 {
		t.Fatalf("got %v, %v", secrets, err)
	}
	d, err := m.definition(r, arnsOf(secrets))
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for _, k := range d.ContainerDefinitions {
		if k.RepositoryCredentials != nil {
			with = append(with, *k.Name+" "+*k.RepositoryCredentials.CredentialsParameter)
		}
	}
	if !slices.Equal(with, []string{"main arn:" + secrets["login/main"].name}) {
		t.Errorf("got the credentials %v", with)
	}
	r.Logins[1] = node.RegistryCredential{Registry: "private.example:5000", IdentityToken: canary}
	if _, err := vaultOf(m, "k").secrets(r); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].image") || strings.Contains(err.Error(), canary) {
		t.Errorf("a token for a registry: got %v", err)
	}
}

// TestFileSystems checks that an EFS file system is mounted by its ID with encryption in transit, and read-only
// in every container if the volume says so.
func TestFileSystems(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		pod := testPod()
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "shared", VolumeSource: corev1.VolumeSource{
			NFS: &corev1.NFSVolumeSource{Server: "fs-0123456789abcdef0.efs.eu-central-1.amazonaws.com", Path: "/team", ReadOnly: fixed},
		}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "shared", MountPath: "/shared"})
		d, err := testMapping(t).definition(testResolved(pod), map[string]string{"main": "arn:s"})
		if err != nil {
			t.Fatal(err)
		}
		v := d.Volumes[1].EfsVolumeConfiguration
		if v == nil || *v.FileSystemId != "fs-0123456789abcdef0" || *v.RootDirectory != "/team" || v.TransitEncryption != "ENABLED" {
			t.Errorf("got %+v", v)
		}
		mounts := d.ContainerDefinitions[3].MountPoints
		if m := mounts[len(mounts)-1]; *m.SourceVolume != "shared" || *m.ReadOnly != fixed {
			t.Errorf("readOnly %t: the volume %s is mounted with read-only %t", fixed, *m.SourceVolume, *m.ReadOnly)
		}
	}
}

// TestPortsOfPodsOutOfReach checks that a node that cannot reach pods refuses probes of ports.
func TestPortsOfPodsOutOfReach(t *testing.T) {
	pod := testPod()
	pod.Spec.Containers[0].ReadinessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}
	for reachable, refused := range map[bool]bool{true: false, false: true} {
		m := testMapping(t)
		m.config.Reachable = &reachable
		if err := refusal(m.config, pod); errdefs.IsInvalidInput(err) != refused {
			t.Errorf("reachable %t: got %v", reachable, err)
		}
	}
}
