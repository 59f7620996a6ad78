// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// flagged returns a pod with flags for sbatch.
func flagged(flags string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Annotations: map[string]string{AnnotationFlags: flags}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
}

// TestSecurityC8FlagsTakeNoOtherArgument checks that every flag with a required value has one, and that no value
// is an option, a file or empty.
func TestSecurityC8FlagsTakeNoOtherArgument(t *testing.T) {
	c := completed(t, Config{Flags: []string{"--constraint", "--nice", "--exclusive", "--hold", "--nodelist", "--exclude", "--mail-user", "--site-plugin"}})
	for flags, want := range map[string]bool{
		"--constraint=fast": true, "--constraint=a&b": true, "--constraint=a=b": true, "--nice": true, "--nice=5": true, "--nice=-5": true, "--exclusive": true,
		"--exclusive=user": true, "--hold": true, "--nodelist=n[1-2]": true, "--site-plugin=/image.sqsh": true, "--nice --hold --constraint=fast": true,

		"--constraint": false, "--hold --constraint": false, "--constraint --nice=5": false, "--constraint --hold": false, "--nice --nodelist": false, "--site-plugin": false,
		"--constraint=": false, "--exclusive=": false, "--hold=": false, "--hold=1": false,
		"--constraint=-x": false, "--constraint=--": false, "--mail-user=-S": false, "--nice=--wrap=id": false,
		"--nodelist=/etc/passwd": false, "--exclude=./nodes": false,
		"--": false, "-": false, ":": false, "-C": false, "-Cfast": false, "-H": false, "--const=fast": false, "--=x": false, "=x": false, "/bin/sh": false,
		"--constraint=fast -- /bin/sh": false, "--constraint=fast : --hold": false,
	} {
		got, _, err := c.readFlags(flagged(flags))
		if (err == nil) != want || err != nil && !errdefs.IsInvalidInput(err) {
			t.Errorf("flags %q: got %q and %v, want them taken: %v", flags, got, err, want)
		}
	}
	_, _, err := c.readFlags(flagged("--hold --constraint"))
	if want := `metadata.annotations[slurm-job.vk.io/flags]: "--constraint": sbatch would take the next argument for its value: write --constraint=VALUE`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestSecurityC8ConfigurationAllowsNoDangerousFlag checks that the configuration cannot allow dangerous flags:
// flags with a program or a file, the provider's own flags, and other forms of both that sbatch accepts.
func TestSecurityC8ConfigurationAllowsNoDangerousFlag(t *testing.T) {
	for _, flag := range []string{"--wrap", "--wra", "--w", "--export-file", "--exp", "--chd", "--bbf", "--nodefile", "--input", "--help", "--vers", "--cont", "--job", "--", "-C", "--a=b"} {
		if _, err := (Config{ClusterName: "home", SharedDir: "/shared", Flags: []string{flag}}).complete(); err == nil {
			t.Errorf("flags: %s: no error", flag)
		}
	}
	for _, flag := range []string{"--constraint", "--time-min", "--switches", "--gpus", "--container-image"} {
		if _, err := (Config{ClusterName: "home", SharedDir: "/shared", Flags: []string{flag}}).complete(); err != nil {
			t.Errorf("flags: %s: %v", flag, err)
		}
	}
}
