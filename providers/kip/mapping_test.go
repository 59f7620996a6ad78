// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// aPod returns a pod with requests and annotations.
func aPod(resources corev1.ResourceList, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u", Annotations: annotations}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{Limits: resources}}},
	}}
}

func manySizes() Config {
	c := testConfig("home")
	c.Types = append(c.Types, []Type{
		{Name: "c5.large", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"), Price: new(resource.MustParse("0.085"))},
		{Name: "c5.xlarge", CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi"), Price: new(resource.MustParse("0.17"))},
		{Name: "gpu", CPU: resource.MustParse("4"), Memory: resource.MustParse("16Gi"), GPUs: 1, Price: new(resource.MustParse("0.05"))},
		{Name: "unpriced", CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi")},
	}...)
	c.SecurityGroups, c.InstanceProfiles, c.MaxVolumeGiB = []string{"sg-1"}, []string{"arn:aws:iam::1:instance-profile/reader"}, 20
	return c
}

// TestSizeOfAMachine: the cheapest type with room comes first, and more expensive types follow.
func TestSizeOfAMachine(t *testing.T) {
	ask := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for name, c := range map[string]struct {
		ask         corev1.ResourceList
		annotations map[string]string
		want        string
	}{
		"the cheapest, and those without a price last": {ask("1", "1Gi"), nil, "c5.large small c5.xlarge large unpriced gpu"},
		"of spot by the price of spot":                 {ask("1", "1Gi"), map[string]string{annotationLaunch: "spot"}, "small c5.large c5.xlarge large unpriced gpu"},
		"with room for the memory":                     {ask("1", "5Gi"), nil, "c5.xlarge large gpu"},
		"by a pattern":                                 {ask("1", "1Gi"), map[string]string{annotationType: "c5*"}, "c5.large c5.xlarge"},
		"by a name":                                    {nil, map[string]string{annotationType: "large"}, "large"},
		"with a GPU":                                   {corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}, nil, "gpu"},
	} {
		w, err := manySizes().wishOf(aPod(c.ask, c.annotations))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, m := range w.types {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

// TestAnnotationsThatAreRefused: the provider refuses annotations that widen rights beyond the configuration's lists, and unsupported values, with the
// reason.
func TestAnnotationsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ key, value, words string }{
		{annotationGroups, "sg-1,sg-2", `"sg-2": is not one of securityGroups`},
		{annotationProfile, "arn:aws:iam::1:instance-profile/admin", "is not one of instanceProfiles"},
		{annotationPrefix + "cloud-route", "10.0.0.0/8", "changes no routes"},
		{annotationPrefix + "task-role", "r", "it is for ECS"},
		{annotationVolume, "21Gi", "at most maxVolumeGiB"},
		{annotationVolume, "many", "want a size"},
		{annotationLaunch, "cheap", "want spot or on-demand"},
		{annotationPrivate, "yes", "want true or false"},
		{annotationType, "m5.large", "no type of the provider's configuration is called so"},
		{annotationType, "small", "no type small has room for 2 CPUs"},
	} {
		pod := aPod(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, map[string]string{c.key: c.value})
		err := manySizes().check(pod)
		if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %s: got %v, want an error that says %s", c.key, c.value, err, c.words)
		}
	}
	w, err := manySizes().wishOf(aPod(nil, map[string]string{
		annotationGroups: "sg-1", annotationProfile: "arn:aws:iam::1:instance-profile/reader", annotationVolume: "12G", annotationPrivate: "true",
	}))
	if err != nil || len(w.spec.SecurityGroups) != 1 || w.spec.InstanceProfile == "" || w.spec.VolumeGiB != 12 || !w.spec.PrivateOnly || !w.special {
		t.Errorf("got %+v, %v", w.spec, err)
	}
}

// terminal is a session that requests a terminal.
type terminal struct{ api.AttachIO }

func (terminal) TTY() bool { return true }

// TestTerminalIsRefused: the agent has no terminal, so the provider refuses a command that requests one, and gives a remedy.
func TestTerminalIsRefused(t *testing.T) {
	err := (&driver{}).Exec(t.Context(), service.Target[instance]{}, []string{"sh"}, terminal{})
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "leave -t away") {
		t.Errorf("got %v", err)
	}
}
