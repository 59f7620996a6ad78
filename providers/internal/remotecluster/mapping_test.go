// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

var testHome = Home{Cluster: "upper", Node: "vk-0"}

// testTarget returns the target of the tests' pods.
func testTarget() Target {
	return Target{
		Home: testHome, Namespace: testHome.NamespaceName("default"), ServiceAccount: "tenant",
		Place:       Placement{NodeSelector: map[string]string{"pool": "bursts"}},
		Annotations: func(key string) bool { return key == "note" },
		Services:    map[string][]corev1.EnvVar{"main": {{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"}}},
		Restarts:    map[string]int32{"main": 3},
	}
}

// TestTranslateGolden translates each testdata/NAME.pod.yaml and compares the result with
// testdata/NAME.golden.yaml. UPDATE_GOLDEN=1 writes the golden files.
func TestTranslateGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pod.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			if err := yaml.UnmarshalStrict(data, pod); err != nil {
				t.Fatal(err)
			}
			before := pod.DeepCopy()
			tr, err := Translate(pod, testTarget())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("the pod at home was changed: %s", diff)
			}
			files := map[string]string{}
			for k, v := range tr.Files {
				files[k] = string(v)
			}
			got, err := yaml.Marshal(map[string]any{"pod": tr.Pod, "refs": tr.Refs, "files": files, "tokens": tr.Tokens})
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".pod.yaml") + ".golden.yaml"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the remote pod differs (-want +got):\n%s", diff)
			}
		})
	}
}

// fields maps each field of a pod's spec to its treatment. The README has the same table.
var fields = map[string]string{
	"volumes": "rewritten", "initContainers": "rewritten", "containers": "rewritten", "ephemeralContainers": "dropped",
	"restartPolicy": "kept", "terminationGracePeriodSeconds": "kept", "activeDeadlineSeconds": "dropped", "dnsPolicy": "kept",
	"nodeSelector": "rewritten", "serviceAccountName": "rewritten", "serviceAccount": "dropped", "automountServiceAccountToken": "rewritten",
	"nodeName": "dropped", "hostNetwork": "dropped", "hostPID": "dropped", "hostIPC": "dropped", "shareProcessNamespace": "kept",
	"securityContext": "kept", "imagePullSecrets": "rewritten", "hostname": "rewritten", "subdomain": "kept", "affinity": "rewritten",
	"schedulerName": "dropped", "tolerations": "rewritten", "hostAliases": "kept", "priorityClassName": "dropped", "priority": "dropped",
	"dnsConfig": "kept", "readinessGates": "dropped", "runtimeClassName": "dropped", "enableServiceLinks": "rewritten",
	"preemptionPolicy": "dropped", "overhead": "dropped", "topologySpreadConstraints": "dropped", "setHostnameAsFQDN": "kept", "os": "kept",
	"hostUsers": "kept", "schedulingGates": "dropped", "resourceClaims": "dropped", "resources": "kept", "hostnameOverride": "kept",
	"schedulingGroup": "dropped", "workloadRef": "dropped", "evictionResponders": "dropped",
}

// TestEveryFieldIsDecided fails for a field of a later API version until its treatment is decided.
func TestEveryFieldIsDecided(t *testing.T) {
	kind := reflect.TypeFor[corev1.PodSpec]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		what, decided := fields[name]
		if !decided {
			t.Errorf("spec.%s: nobody has said what becomes of it in the remote cluster", name)
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}
		field := reflect.ValueOf(&pod.Spec).Elem().Field(i)
		if what == "rewritten" || !fill(field) {
			continue
		}
		want := reflect.ValueOf(pod.DeepCopy().Spec).Field(i).Interface()
		tr, err := Translate(pod, Target{Home: testHome})
		if err != nil {
			t.Fatalf("spec.%s: %v", name, err)
		}
		got := reflect.ValueOf(tr.Pod.Spec).Field(i)
		switch {
		case what == "dropped" && !got.IsZero():
			t.Errorf("spec.%s goes to the remote cluster as %v, want it left out", name, got.Interface())
		case what == "kept" && !reflect.DeepEqual(got.Interface(), want):
			t.Errorf("spec.%s is %v in the remote cluster, want %v", name, got.Interface(), want)
		}
	}
}

// fill changes a field of a simple type from its zero value, and reports whether it could.
func fill(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	default:
		return false
	}
	return true
}

func TestNamesAreApart(t *testing.T) {
	pod := func(namespace, name, uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
	}
	seen := map[string]string{}
	for what, name := range map[string]string{
		"a pod":                   testHome.PodName(pod("a", "web-0", "1")),
		"the next of its name":    testHome.PodName(pod("a", "web-0", "2")),
		"in another namespace":    testHome.PodName(pod("b", "web-0", "1")),
		"of another node":         Home{"upper", "vk-1"}.PodName(pod("a", "web-0", "1")),
		"of another cluster":      Home{"other", "vk-0"}.PodName(pod("a", "web-0", "1")),
		"a copy":                  testHome.CopyName(KindSecret, "a", "web-0"),
		"a copy of another kind":  testHome.CopyName(KindConfigMap, "a", "web-0"),
		"a copy of another place": testHome.CopyName(KindSecret, "b", "web-0"),
	} {
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s have the same name %s", what, other, name)
		}
		seen[name] = what
		if len(name) > 63 {
			t.Errorf("%s: %s is longer than a label", what, name)
		}
	}
	if a, b := (Home{"a-b", "n"}).NamespaceName("c"), (Home{"a", "n"}).NamespaceName("b-c"); a == b {
		t.Errorf("two clusters have the namespace %s", a)
	}
	long := strings.Repeat("x", 250)
	if a, b := testHome.PodName(pod("a", long+"1", "1")), testHome.PodName(pod("a", long+"2", "1")); a == b || len(a) > 63 {
		t.Errorf("long names become %s and %s", a, b)
	}
}

func TestPodsOfOthersAreRefused(t *testing.T) {
	for name, v := range map[string]corev1.VolumeSource{
		"hostPath": {HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		"nfs":      {NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}},
		"claim":    {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
		"bundle": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "p"}}}}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: v}}}}
		if _, err := Translate(pod, testTarget()); !errdefs.IsInvalidInput(err) {
			t.Errorf("%s: got %v, want an error of the kind invalid-input", name, err)
		}
	}
}

func TestHostProcessIsRefused(t *testing.T) {
	yes := true
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{
		WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: &yes}}}}}}
	if _, err := Translate(pod, testTarget()); !errdefs.IsInvalidInput(err) {
		t.Errorf("a container that is its node's: got %v, want an error of the kind invalid-input", err)
	}
}

func TestReservedLabelsAreOurs(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{LabelNode: "another", "app": "web"},
		Annotations: map[string]string{AnnotationName: "another"}}}
	tr, err := Translate(pod, testTarget())
	if err != nil {
		t.Fatal(err)
	}
	if !testHome.ownsObject(tr.Pod) || tr.Pod.Annotations[AnnotationName] != "p" || tr.Pod.Labels["app"] != "web" {
		t.Errorf("labels %v and annotations %v, want those of the node", tr.Pod.Labels, tr.Pod.Annotations)
	}
}

func TestPatchRemovesWhatIsGoneAtHome(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{"a": "1", "b": "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}},
	}
	have := translated(t, pod)
	have.UID, have.Labels["webhook"] = "remote", "added"
	if patch, err := patchOf(have, translated(t, pod)); patch != nil || err != nil {
		t.Errorf("nothing changed, and the patch is %s (%v)", patch, err)
	}
	pod.Labels, pod.Spec.Containers[0].Image = map[string]string{"a": "2"}, "two"
	patch, err := patchOf(have, translated(t, pod))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"remote.virtual-kubelet.io/sent":"{\"labels\":[\"a\"],\"images\":{\"main\":\"two\"}}"},"labels":{"a":"2","b":null},"uid":"remote"},` +
		`"spec":{"containers":[{"name":"main","image":"two"}]}}`
	if string(patch) != want {
		t.Errorf("the patch is\n%s, want\n%s", patch, want)
	}
}

func translated(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	tr, err := Translate(pod, Target{Home: testHome})
	if err != nil {
		t.Fatal(err)
	}
	return tr.Pod
}
